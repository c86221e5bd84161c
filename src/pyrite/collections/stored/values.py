"""Values as bytes. They are pickled, so whoever can write where they are stored can run code in
those who read."""

from __future__ import annotations

import pickle
from typing import Any, Final

from pyrite.columns.packing.item_pickling import dumps_by_reference, dumps_code
from pyrite.errors import PyriteError
from pyrite.functions import shorten

MOST_BYTES: Final = 512 << 20
"""Redis takes no longer string, and SQLite not much more."""

unpacked = pickle.loads


class CannotStore(PyriteError, TypeError):
    """A key or a value that cannot be stored."""


def packed(value: Any) -> bytes:
    """Pickles a value. Classes and functions of the program itself are pickled as code, because
    other processes cannot import them."""
    data = _by_reference(value)
    if data is None or b"__main__" in data:
        data = _with_code(value)
    if len(data) > MOST_BYTES:
        raise CannotStore(
            f"{shorten(value)} cannot be stored: it takes {len(data) >> 20} MB, and a key with its "
            f"value, or an item, may take at most {MOST_BYTES >> 20}; store it in parts"
        )
    return data


def _by_reference(value: Any) -> bytes | None:
    try:
        return dumps_by_reference(value, value)
    except Exception:
        return None


def _with_code(value: Any) -> bytes:
    try:
        return dumps_code(value)
    except Exception as error:
        raise CannotStore(
            f"{shorten(value)} cannot be stored, because it cannot be pickled: {error}"
        ) from error
