"""The ready-made processors.

Use them as `from pyrite import processors as p`, then `dag.vertex("words", p.flat_map(str.split))`.
"""

from pyrite.processors.collections import read_list, read_map, write_list, write_map
from pyrite.processors.columns.doors import batches, rows
from pyrite.processors.columns.grouping import group_batches
from pyrite.processors.columns.joining import join_batches
from pyrite.processors.columns.mapping import map_batches
from pyrite.processors.columns.sinks.writing import write_batches
from pyrite.processors.columns.sorting import sort_batches
from pyrite.processors.columns.sources.reading import read_batches
from pyrite.processors.files import read_files, write_files
from pyrite.processors.groups.grouping import (
    accumulate,
    collect,
    count_distinct,
    group_and_accumulate,
    group_and_collect,
)
from pyrite.processors.items import read_items
from pyrite.processors.services.calling import flat_map_with, map_async, map_with
from pyrite.processors.spark import read_spark, write_spark
from pyrite.processors.sql import read_sql, write_sql
from pyrite.processors.transforms import filter, flat_map, map, noop

__all__ = [
    "accumulate",
    "batches",
    "collect",
    "count_distinct",
    "filter",
    "flat_map",
    "flat_map_with",
    "group_and_accumulate",
    "group_and_collect",
    "group_batches",
    "join_batches",
    "map",
    "map_async",
    "map_batches",
    "map_with",
    "noop",
    "read_batches",
    "read_files",
    "read_items",
    "read_list",
    "read_map",
    "read_spark",
    "read_sql",
    "rows",
    "sort_batches",
    "write_batches",
    "write_files",
    "write_list",
    "write_map",
    "write_spark",
    "write_sql",
]
