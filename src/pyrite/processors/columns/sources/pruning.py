"""Which row groups of a Parquet file may have rows that pass a filter.

Statistics leave NaN out: of a row group with 1.0 and NaN they say that all values are 1.0. So a row
group is also kept if rows may pass in which some of the float columns are NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations
from operator import and_
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs

from pyrite.processors.files.partitions import fields_of

_MOST_FLOATS = 4
"""Each more doubles the time that pruning takes."""


def unpruned(
    source: str | IO[bytes],
    path: str,
    schema: pa.Schema,
    groups: Sequence[int],
    filter: pc.Expression,
    looked_at: Sequence[str],
) -> list[int]:
    """The row groups that may have rows that pass the filter, which looks at these columns."""
    fields = [schema.field(name) for name in looked_at]
    floats = [field for field in fields if pa.types.is_floating(field.type)]
    if len(floats) > _MOST_FLOATS or any(_has_float_inside(field.type) for field in fields):
        return list(groups)
    folders = [
        pc.field(name).is_null() if value is None else pc.field(name) == value
        for name, value in fields_of(path).items()
    ]
    pruned, kept = list(groups), set[int]()
    for nans in _choices(floats):
        if not pruned:
            break
        true = [*folders, *(pc.field(field.name) == _nan(field.type) for field in nans)]
        fragment = ds.ParquetFileFormat().make_fragment(
            source,
            filesystem=fs.LocalFileSystem() if isinstance(source, str) else None,
            partition_expression=reduce(and_, true) if true else None,
            row_groups=pruned,
        )
        kept |= {group.id for group in fragment.subset(filter, schema=schema).row_groups}
        pruned = [group for group in pruned if group not in kept]
    return sorted(kept)


def _choices(floats: Sequence[pa.Field]) -> Iterator[tuple[pa.Field, ...]]:
    """The columns that may be NaN in one row: none first, then each, then all pairs, and on."""
    return (some for count in range(len(floats) + 1) for some in combinations(floats, count))


def _nan(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar(math.nan, pa.float64()).cast(kind)


def _has_float_inside(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        inner = [kind.value_type]
    else:
        inner = [kind.field(number).type for number in range(kind.num_fields)]
    return any(pa.types.is_floating(each) or _has_float_inside(each) for each in inner)
