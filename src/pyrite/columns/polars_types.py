"""Which Arrow types Polars has not: it panics when it gets rows of them. And which it keeps."""

from __future__ import annotations

import pyarrow as pa

from pyrite.errors import ProcessorError


def lacks(kind: pa.DataType) -> bool:
    """Whether Polars does not have a type, or one inside it."""
    types = pa.types
    if (
        types.is_decimal256(kind)
        or types.is_interval(kind)
        or types.is_union(kind)
        or types.is_list_view(kind)
        or types.is_large_list_view(kind)
    ):
        return True
    if types.is_dictionary(kind):
        return lacks(kind.value_type)
    return any(lacks(kind.field(number).type) for number in range(kind.num_fields))


def keeps(type_: pa.DataType) -> bool:
    """Whether a column of this type has the same type after a way through Polars, except for wider
    offsets of strings, bytes and lists."""
    t = pa.types
    if t.is_list(type_) or t.is_large_list(type_):
        return keeps(type_.value_type)
    if t.is_struct(type_):
        return all(keeps(field.type) for field in type_.fields)
    if t.is_timestamp(type_) or t.is_duration(type_):
        return str(type_.unit) != "s"
    if t.is_time(type_):
        return bool(type_ == pa.time64("ns"))
    return bool(
        t.is_boolean(type_)
        or t.is_integer(type_)
        or t.is_float32(type_)
        or t.is_float64(type_)
        or (t.is_decimal128(type_) and type_.scale >= 0)
        or t.is_date32(type_)
        or t.is_null(type_)
        or _is_text_or_bytes(type_)
    )


def check(schema: pa.Schema) -> None:
    """Raises ProcessorError for a column that cannot be in a frame of Polars."""
    for field in schema:
        if lacks(field.type):
            raise ProcessorError(
                f"column '{field.name}' is {field.type}, a type that Polars does not have; cast it "
                "before with map_batches(), or use format='arrow' or kernels='arrow'"
            )


def _is_text_or_bytes(type_: pa.DataType) -> bool:
    t = pa.types
    kinds = (t.is_string, t.is_large_string, t.is_string_view)
    bytes_kinds = (t.is_binary, t.is_large_binary, t.is_binary_view)
    return any(kind(type_) for kind in (*kinds, *bytes_kinds))
