"""The partition of each row of a batch, without a loop over rows. It is the partition that the
row's key has as a Python object, so rows in batches and single items with equal keys meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyrite.columns.canonical import Codes, Form, Numbers, Texts, form_of
from pyrite.columns.murmur import hashes_of_bytes, hashes_of_tagged
from pyrite.columns.schemas import column_of
from pyrite.partitioning import PARTITION_COUNT, canonical_bytes

Array = np.ndarray[Any, np.dtype[Any]]


def partitions_of(
    batch: pa.RecordBatch, columns: Sequence[str], partition_count: int = PARTITION_COUNT
) -> Array:
    """For each row `partition_id(key, partition_count)`, as int32. The key is the value of the one
    column, or the tuple of the values of several, as `to_pylist` gives them. All rows with a null
    key are in one partition: that of None.

    >>> batch = pa.record_batch({"id": [7, 8], "name": ["a", None]})
    >>> partitions_of(batch, ["id", "name"]).tolist()
    [198, 188]
    """
    hashes = hashes_of(batch, columns)
    # NumPy divides by one number with a multiplication; its remainder is several times as slow.
    quotients = hashes // np.uint32(partition_count)
    quotients *= np.uint32(partition_count)
    hashes -= quotients
    return hashes.astype(np.int32)


def hashes_of(batch: pa.RecordBatch, columns: Sequence[str]) -> Array:
    """The hash of each row's key, as uint32, of which `partitions_of` takes the remainder."""
    if not batch.num_rows:
        return np.zeros(0, np.uint32)
    forms = [form_of(column_of(batch, name)) for name in columns]
    if not forms:
        return np.full(batch.num_rows, _hash(canonical_bytes(())), np.uint32)
    if len(forms) == 1:
        return _hashes_of_one(forms[0])
    return hashes_of_bytes(_joined(forms))


def _hash(data: bytes) -> int:
    return mmh3.hash(data, 0, False)


_NULL: Final = canonical_bytes(None)
_NAN: Final = canonical_bytes(float("nan"))


def _hashes_of_one(form: Form) -> Array:
    if isinstance(form, Codes):
        return np.array([_hash(data) for data in form.canonical_bytes()], np.uint32)[form.indices]
    if isinstance(form, Texts):
        hashes = hashes_of_bytes(form.values)
        if form.values.null_count:
            hashes[form.values.is_null().to_numpy(zero_copy_only=False)] = _hash(_NULL)
        return hashes
    hashes = hashes_of_tagged(b"n", form.hashes)
    if form.nan is not None:
        hashes[form.nan] = _hash(_NAN)
    if form.null is not None:
        hashes[form.null] = _hash(_NULL)
    return hashes


def _joined(forms: Sequence[Form]) -> pa.Array:
    """The canonical bytes of the tuple of each row, made by one kernel: constants and columns."""
    pieces: list[Any] = [canonical_bytes(())]
    for number, form in enumerate(forms):
        if number:
            pieces[-1:] = _appended(pieces[-1], _BETWEEN)
        if isinstance(form, Numbers) and form.nan is None and form.null is None:
            pieces[-1:] = _appended(pieces[-1], _NUMBER)
            pieces.append(_digits(form))
        else:
            pieces.append(_part(form))
    kind = _string_type([piece for piece in pieces if not isinstance(piece, bytes)])
    columns = [
        pa.scalar(piece, pa.binary()).cast(kind) if isinstance(piece, bytes) else piece.cast(kind)
        for piece in pieces
    ]
    return pc.binary_join_element_wise(
        *columns, pa.scalar("", kind), null_handling="replace", null_replacement=_NULL.decode()
    )


_NUMBER: Final = b"\x1e"
_BETWEEN: Final = b"\x1f"


def _appended(piece: Any, constant: bytes) -> list[Any]:
    return [piece + constant] if isinstance(piece, bytes) else [piece, constant]


def _part(form: Form) -> pa.Array:
    """A column as parts of the canonical bytes of tuples."""
    if isinstance(form, Texts):
        return form.values
    if isinstance(form, Codes):
        return pa.array(form.parts(), pa.binary()).take(pa.array(form.indices))
    parts = pc.binary_join_element_wise(_NUMBER.decode(), _digits(form), "")
    if form.nan is not None:
        parts = pc.if_else(pa.array(form.nan), _NAN.decode(), parts)
    return parts if form.null is None else pc.if_else(pa.array(form.null), _NULL.decode(), parts)


def _digits(form: Numbers) -> pa.Array:
    return pa.array(form.hashes).cast(pa.string())


def _string_type(columns: Sequence[pa.Array]) -> pa.DataType:
    """Offsets of 32 bits, unless the joined strings may have 2 GB."""
    size = sum(column.nbytes for column in columns)
    is_large = any(column.type in (pa.large_string(), pa.large_binary()) for column in columns)
    return pa.large_string() if is_large or size > 1 << 30 else pa.string()
