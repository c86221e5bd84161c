"""Random Arrow arrays of every type, with nulls, slices and the values at the ends of each type."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

_DAY: Final = 86_400
_SECONDS: Final = st.integers(-62_135_596_800 // 2, 200_000_000_000)
"""Moments as seconds since 1970, from the years 985 to 8307."""
_BITS: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_ZONES: Final = ("UTC", "Europe/Berlin", "America/St_Johns", "+05:30")


def _integers(kind: pa.DataType) -> st.SearchStrategy[Any]:
    is_signed = pa.types.is_signed_integer(kind)
    bits = kind.bit_width - is_signed
    return st.integers(-(1 << bits) if is_signed else 0, (1 << bits) - 1)


def _moments(unit: str) -> st.SearchStrategy[int]:
    per_second = _BITS[unit]
    seconds = st.integers(-2_000_000_000, 9_000_000_000) if unit == "ns" else _SECONDS
    fractions = st.sampled_from([0, 1, per_second // 2, per_second - 1, per_second // 1000])
    return st.builds(lambda s, f: s * per_second + f % per_second, seconds, fractions)


_TEXT: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_BINARY: Final = st.binary(max_size=20)

KINDS: Final[dict[pa.DataType, st.SearchStrategy[Any]]] = {
    pa.null(): st.none(),
    pa.bool_(): st.booleans(),
    **{
        kind: _integers(kind)
        for kind in [
            *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
            *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        ]
    },
    pa.float16(): st.integers(0, 0xFFFF).map(lambda bits: np.uint16(bits).view(np.float16)),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats() | st.integers(-(2**53), 2**53).map(float),
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), _TEXT),
    **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), _BINARY),
    pa.binary(5): st.binary(min_size=5, max_size=5),
    pa.date32(): st.dates(),
    pa.date64(): st.dates(),
    **{pa.timestamp(unit): _moments(unit) for unit in _BITS},
    **{pa.timestamp(unit, zone): _moments(unit) for unit in _BITS for zone in _ZONES},
    pa.time32("s"): st.integers(0, _DAY - 1),
    pa.time32("ms"): st.integers(0, _DAY * 1_000 - 1),
    pa.time64("us"): st.integers(0, _DAY * 1_000_000 - 1),
    pa.time64("ns"): st.integers(0, _DAY * 1_000_000_000 - 1),
    **{pa.duration(unit): st.integers(-(10**13), 10**13) for unit in _BITS},
    pa.month_day_nano_interval(): st.tuples(
        st.integers(-99, 99), st.integers(-99, 99), st.integers(-(10**15), 10**15)
    ),
    pa.decimal128(5, 2): st.integers(-99_999, 99_999).map(lambda n: Decimal(n).scaleb(-2)),
    pa.decimal128(38, 10): st.integers(-(10**37), 10**37).map(lambda n: _scaled(n, 10)),
    pa.decimal128(9, -3): st.integers(-99_999, 99_999).map(lambda n: Decimal(n * 1000)),
    pa.decimal256(60, 30): st.integers(-(10**59), 10**59).map(lambda n: _scaled(n, 30)),
    pa.list_(pa.int64()): st.lists(st.none() | st.integers(-9, 9), max_size=3),
    pa.large_list(pa.string()): st.lists(_TEXT, max_size=3),
    pa.list_(pa.float64(), 2): st.lists(st.floats(), min_size=2, max_size=2),
    pa.list_view(pa.int32()): st.lists(st.integers(-9, 9), max_size=3),
    pa.list_(pa.list_(pa.string_view())): st.lists(st.lists(_TEXT, max_size=2), max_size=2),
    pa.struct([("a", pa.int64()), ("b", pa.string())]): st.fixed_dictionaries(
        {"a": st.none() | st.integers(-9, 9), "b": st.none() | _TEXT}
    ),
    pa.map_(pa.string(), pa.int64()): st.lists(
        st.tuples(_TEXT, st.integers(-9, 9)), max_size=3, unique_by=lambda pair: pair[0]
    ),
    pa.uuid(): st.uuids().map(lambda value: value.bytes),
}
"""Each type, and values of it as `pa.array` takes them."""

if hasattr(pa, "decimal64"):  # since pyarrow 19
    KINDS[pa.decimal32(9, 4)] = st.integers(-(10**8), 10**8).map(lambda n: _scaled(n, 4))
    KINDS[pa.decimal64(18, 0)] = st.integers(-(10**17), 10**17).map(lambda n: _scaled(n, 0))

ENCODED: Final = [
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.int64()),
    pa.dictionary(pa.uint16(), pa.timestamp("us", "UTC")),
    pa.run_end_encoded(pa.int32(), pa.int64()),
    pa.run_end_encoded(pa.int16(), pa.string()),
]
"""Types whose values are those of another type."""

_SELDOM: Final = {pa.timestamp(unit, zone) for unit in ("s", "ms", "ns") for zone in _ZONES}
TYPES: Final = [*(kind for kind in KINDS if kind not in _SELDOM), *ENCODED]
"""The types to test everything with."""


def _scaled(number: int, digits: int) -> Decimal:
    sign, digits_of_it, _ = Decimal(number).as_tuple()
    return Decimal((sign, digits_of_it, -digits))


def arrays(
    kind: pa.DataType, *, min_size: int = 0, max_size: int = 12
) -> st.SearchStrategy[pa.Array]:
    """Arrays of a type. Some are slices of longer ones."""
    inner = kind if kind in KINDS else kind.value_type
    values = st.lists(st.none() | KINDS[inner], min_size=min_size, max_size=max_size)
    before = st.lists(KINDS[inner], max_size=3)
    return st.builds(lambda a, b: _made(kind, inner, a + b).slice(len(a)), before, values)


def _made(kind: pa.DataType, inner: pa.DataType, values: list[Any]) -> pa.Array:
    if inner == pa.uuid():
        return pa.ExtensionArray.from_storage(inner, pa.array(values, inner.storage_type))
    array = pa.array(values, inner)
    if pa.types.is_dictionary(kind):
        return array.dictionary_encode().cast(kind)
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(array, kind.run_end_type)
    return array
