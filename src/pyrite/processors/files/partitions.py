"""Partitions: folders such as `country=DE`, which say what their rows have in common. They have the
names that Hive and Spark would give them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

NONE = "__HIVE_DEFAULT_PARTITION__"
"""Stands for None, as in Hive and Spark."""
_MOST_BYTES = 255
_SPECIAL = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{}\[\]^]|^\.""")
_TYPES = (str, int, Decimal, date)


class NoFolder(Exception):
    """Says why a folder cannot be named after a value."""


def folder_of(value: Any, name: str | None = None) -> str:
    """The folder for a value, of the field of this name or without a name. Raises NoFolder.

    >>> folder_of("DE", "country"), folder_of("a/b"), folder_of(None, "day")
    ('country=DE', 'a%2Fb', 'day=__HIVE_DEFAULT_PARTITION__')
    """
    folder = _text(value) if name is None else f"{_escaped(name)}={_text(value)}"
    try:
        size = len(folder.encode())
    except UnicodeEncodeError:
        raise NoFolder("it holds half of a surrogate pair") from None
    if size > _MOST_BYTES:
        raise NoFolder(f"its name would have {size} bytes, more than {_MOST_BYTES}")
    return folder


def fields_of(path: str) -> dict[str, str | None]:
    """The fields that the folders of a file are named after.

    >>> fields_of("out/country=DE/day=2024-01-31/part-00000.csv")
    {'country': 'DE', 'day': '2024-01-31'}
    """
    folders = path.split("/")[:-1]
    pairs = [folder.partition("=") for folder in folders if "=" in folder]
    return {
        unquote(name): None if value == NONE else unquote(value)
        for name, _, value in pairs
        if name and value
    }


def without(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """A row without the fields that its folder is named after."""
    rest = dict(row)
    for name in names:
        del rest[name]
    return rest


def _text(value: Any) -> str:
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, _TYPES):
        raise NoFolder(f"it is a {type(value).__name__}; use a str, int, bool, date or Decimal")
    text = _escaped(str(value))
    if not text or text == NONE:
        raise NoFolder("it is empty; use None" if not text else "it stands for None")
    return text


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"%{ord(found[0]):02X}", text)
