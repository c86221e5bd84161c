"""The canonical bytes of a column's values (see `pyrite.partitioning.canonical_bytes`), without a
loop over rows, in one of three forms:

- `Numbers`: integers, floats, bools and decimals, as hashes of the numbers;
- `Texts`: strings, and what is made of strings by kernels;
- `Codes`: other types. The bytes of each distinct value, and which of them each row has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyrite.columns.numbers import hashes_of_floats, hashes_of_integers
from pyrite.partitioning import canonical_bytes

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Numbers:
    """The hash of each number, the rows that have NaN, and those that have null."""

    hashes: Array
    nan: Array | None
    null: Array | None


@dataclass(frozen=True)
class Texts:
    """A string or binary array with the canonical bytes of each row, null for null."""

    values: pa.Array


@dataclass(frozen=True)
class Codes:
    """The Python values, and for each row the index of its value."""

    values: list[Any]
    indices: Array

    def canonical_bytes(self) -> list[bytes]:
        return [canonical_bytes(value) for value in self.values]

    def parts(self) -> list[bytes]:
        """Each value as a part of the canonical bytes of a tuple."""
        return [canonical_bytes((value,))[_TUPLE:] for value in self.values]


_TUPLE = len(canonical_bytes(()))

Form = Numbers | Texts | Codes


def form_of(column: pa.Array) -> Form:
    """The canonical bytes of a column."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Texts(column)
    if pa.types.is_integer(kind):
        return Numbers(hashes_of_integers(_values(column)), None, _nulls(column))
    if pa.types.is_floating(kind):
        floats = _values(column).astype(np.float64, copy=False)
        nan = np.isnan(floats)
        return Numbers(hashes_of_floats(floats), nan if nan.any() else None, _nulls(column))
    if pa.types.is_boolean(kind):
        return form_of(column.cast(pa.int8()))
    if pa.types.is_dictionary(kind):
        return _dictionary(column)
    return _distinct(column)


def _values(column: pa.Array) -> Array:
    """The values of a column of numbers. Those of nulls are any, but not undefined."""
    values = np.frombuffer(column.buffers()[1], column.type.to_pandas_dtype())
    return values[column.offset : column.offset + len(column)]


def _nulls(column: pa.Array) -> Array | None:
    if not column.null_count:
        return None
    nulls: Array = column.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _dictionary(column: pa.DictionaryArray) -> Form:
    if len(column.dictionary) > len(column):
        return form_of(column.dictionary_decode())
    return _coded(column.dictionary, column.indices)


def _distinct(column: pa.Array) -> Codes:
    try:
        encoded = column.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):  # lists, structs, extension types
        return Codes(column.to_pylist(), np.arange(len(column)))
    if not isinstance(encoded, pa.DictionaryArray):
        return Codes(column.to_pylist(), np.arange(len(column)))
    return _coded(encoded.dictionary, encoded.indices)


def _coded(values: pa.Array, indices: pa.Array) -> Codes:
    python = values.to_pylist()
    if indices.null_count:
        python.append(None)
        indices = pc.fill_null(indices.cast(pa.int64()), len(values))
    return Codes(python, indices.to_numpy())
