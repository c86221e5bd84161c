"""Names for types of pyarrow in public signatures. pyarrow has no type information, so that type
checkers in strict mode would report each use of its own names."""

from __future__ import annotations

from typing import Any, TypeAlias

ArrowSchema: TypeAlias = Any
"""A `pyarrow.Schema`."""
ArrowExpression: TypeAlias = Any
"""A `pyarrow.compute.Expression`, such as `pc.field("price") > 10`."""
