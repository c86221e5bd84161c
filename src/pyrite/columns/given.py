"""Schemas as users give them: an Arrow schema, or a dict of names and types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from pyrite.columns.frames import door_type
from pyrite.errors import InvalidDAG
from pyrite.functions import shorten


def checked_schema(given: Any, where: str) -> pa.Schema:
    """The schema with the types that columns have in batches."""
    if isinstance(given, Mapping):
        given = pa.schema([(_checked_name(n, where), _type(n, t, where)) for n, t in given.items()])
    if not isinstance(given, pa.Schema):
        raise InvalidDAG(
            f"{where} needs a schema: a pyarrow.Schema, or a dict of names and types, such as "
            f"{{'word': 'string', 'n': 'int64'}}; got {shorten(given)}"
        )
    if not given.names:
        raise InvalidDAG(f"the schema of {where} has no columns")
    if len(set(given.names)) < len(given.names):
        raise InvalidDAG(f"the schema of {where} has a column twice: {', '.join(given.names)}")
    return pa.schema([f.with_type(door_type(f.type)) for f in given], given.metadata)


def _checked_name(name: Any, where: str) -> str:
    if not isinstance(name, str):
        raise InvalidDAG(f"a name in the schema of {where} must be a string; got {shorten(name)}")
    return name


def _type(name: str, given: Any, where: str) -> pa.DataType:
    if isinstance(given, pa.DataType):
        return given
    if given in _PYTHON_TYPES:
        return _PYTHON_TYPES[given]
    try:
        return pa.type_for_alias(given)
    except (ValueError, TypeError):
        raise InvalidDAG(
            f"the type of column '{name}' in the schema of {where} must be a pyarrow type, or the "
            f"name of one, such as 'int64', 'string' or 'timestamp[us]'; got {shorten(given)}"
        ) from None


_PYTHON_TYPES: dict[Any, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bool: pa.bool_(),
    bytes: pa.binary(),
}
