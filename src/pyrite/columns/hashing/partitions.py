"""The partition of each row of a batch, without a loop over rows. It is the partition that the
row's key has as a Python object, so rows in batches and single items with equal keys meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import mmh3
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyrite.columns.frames import plain
from pyrite.columns.hashing.canonical import Form, Numbers, form_of
from pyrite.columns.hashing.murmur import hashes_of_bytes, hashes_of_tagged
from pyrite.columns.schemas import column_of
from pyrite.partitioning import PARTITION_COUNT, canonical_bytes

Array = np.ndarray[Any, np.dtype[Any]]

_ROWS: Final = 1 << 15
"""So many rows are hashed at once: their arrays stay in the processor's cache, which takes a third
of the time of larger ones."""


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
    return hashes.view(np.int32)


def hashes_of(batch: pa.RecordBatch, columns: Sequence[str]) -> Array:
    """The hash of each row's key, as uint32, of which `partitions_of` takes the remainder."""
    keys = [_decoded(column_of(batch, name)) for name in columns]
    return _of_column(keys[0]) if len(keys) == 1 else _of_tuples(keys, batch.num_rows)


def _decoded(column: pa.Array) -> pa.Array:
    column = plain(column)
    if pa.types.is_dictionary(column.type) and len(column.dictionary) > len(column):
        return plain(column.dictionary_decode())
    return column


def _of_column(column: pa.Array) -> Array:
    if pa.types.is_dictionary(column.type):
        # One more hash, for the rows that are null.
        of_values = np.append(_of_column(_decoded(column.dictionary)), _hash(_NULL))
        return of_values[_indices(column)]
    hashes = np.empty(len(column), np.uint32)
    for start in range(0, len(column), _ROWS):
        hashes[start : start + _ROWS] = _of_form(form_of(column.slice(start, _ROWS)))
    return hashes


def _indices(column: pa.DictionaryArray) -> Array:
    indices = column.indices.cast(pa.int64())
    filled: Array = indices.fill_null(len(column.dictionary)).to_numpy()
    return filled


def _of_form(form: Form) -> Array:
    if not isinstance(form, Numbers):
        hashes = hashes_of_bytes(form)
        if form.null_count:
            hashes[form.is_null().to_numpy(zero_copy_only=False)] = _hash(_NULL)
        return hashes
    hashes = hashes_of_tagged(b"n", form.hashes)
    if form.nan is not None:
        hashes[form.nan] = _hash(_NAN)
    if form.null is not None:
        hashes[form.null] = _hash(_NULL)
    return hashes


def _hash(data: bytes) -> np.uint32:
    return np.uint32(mmh3.hash(data, 0, False))


_NULL: Final = canonical_bytes(None)
_NAN: Final = canonical_bytes(float("nan"))
_NUMBER: Final = b"\x1e"
"""Before a number, in a tuple."""
_BETWEEN: Final = b"\x1f"
"""Between the parts of a tuple."""


def _of_tuples(columns: Sequence[pa.Array], rows: int) -> Array:
    if not columns:
        return np.full(rows, _hash(canonical_bytes(())))
    readers = [_reader(column) for column in columns]
    hashes = np.empty(rows, np.uint32)
    for start in range(0, rows, _ROWS):
        joined = _joined([read(start) for read in readers])
        hashes[start : start + _ROWS] = hashes_of_bytes(joined)
    return hashes


def _reader(column: pa.Array) -> Callable[[int], Form]:
    """A function that gives the canonical bytes of `_ROWS` rows from a row on."""
    if not pa.types.is_dictionary(column.type):
        return lambda start: form_of(column.slice(start, _ROWS), in_tuple=True)
    parts = _as_parts(column.dictionary)
    return lambda start: parts.take(column.indices.slice(start, _ROWS))


def _as_parts(values: pa.Array) -> pa.Array:
    values = _decoded(values)
    if pa.types.is_dictionary(values.type):
        return _as_parts(values.dictionary).take(values.indices)
    form = form_of(values, in_tuple=True)
    return _text(form) if isinstance(form, Numbers) else form


def _joined(forms: Sequence[Form]) -> pa.Array:
    """The canonical bytes of the tuple of each row, made by one kernel: constants and columns."""
    pieces: list[Any] = []
    constant = canonical_bytes(())
    for form in forms:
        if not isinstance(form, Numbers):
            pieces += [constant, form]
        elif form.nan is None and form.null is None:
            pieces += [constant + _NUMBER, _digits(form)]
        else:
            pieces += [constant, _text(form)]
        constant = _BETWEEN
    kind = _kind([piece for piece in pieces if not isinstance(piece, bytes)])
    return pc.binary_join_element_wise(
        *(pa.scalar(each, kind) if isinstance(each, bytes) else each.cast(kind) for each in pieces),
        pa.scalar(b"", kind),
        null_handling="replace",
        null_replacement=_NULL.decode(),
    )


def _text(form: Numbers) -> pa.Array:
    texts = pc.binary_join_element_wise(_NUMBER.decode(), _digits(form), "")
    if form.nan is not None:
        texts = pc.if_else(pa.array(form.nan), _NAN.decode(), texts)
    return texts if form.null is None else pc.if_else(pa.array(form.null), _NULL.decode(), texts)


def _digits(form: Numbers) -> pa.Array:
    return pa.array(form.hashes).cast(pa.string())


def _kind(columns: Sequence[pa.Array]) -> pa.DataType:
    """Binary with offsets of 32 bits, unless the joined bytes may be 2 GB."""
    is_large = any(column.type in (pa.large_string(), pa.large_binary()) for column in columns)
    size = sum(column.nbytes for column in columns)
    return pa.large_binary() if is_large or size > 1 << 30 else pa.binary()
