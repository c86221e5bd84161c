"""Which Arrow types Polars does not have. It panics when it gets rows of them."""

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


def check(schema: pa.Schema) -> None:
    """Raises ProcessorError for a column that cannot be in a frame of Polars."""
    for field in schema:
        if lacks(field.type):
            raise ProcessorError(
                f"column '{field.name}' is {field.type}, a type that Polars does not have; cast it "
                "before with map_batches(), or use format='arrow' or kernels='arrow'"
            )
