"""The columns that a grouping takes out of frames: finds them, and remembers their types. All
frames must have the same types; a column that has only nulls in a frame (type null) has the type
that it has in the others."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as of

from pyrite.columns.grouping.aggregates import Aggregation, GroupSpec, all_parts, parts_of
from pyrite.columns.grouping.kernels import Column
from pyrite.columns.grouping.types import held, held_state, is_ordered, plain, state_of
from pyrite.columns.schemas import InvalidBatch, have_same_values, other_type, position_of


class Inputs:
    """The types of the columns of rows, or of states, of one grouping."""

    def __init__(self, spec: GroupSpec, vertex: str) -> None:
        self._spec = spec
        self._where = f"vertex '{vertex}'"
        self.parts = all_parts(spec.aggregates)
        self.columns = tuple(dict.fromkeys(part.column for part in self.parts))
        self.keys = [f"k{number}" for number in range(len(spec.by))] or ["k0"]
        self._kinds: dict[str, pa.DataType] = {}
        self._seen: dict[str, pa.Schema] = {}

    def add_rows(self, schema: pa.Schema) -> bool:
        """Takes the schema of rows. Returns whether a type has changed."""
        if self._is_seen("rows", schema):
            return False
        found = self._keys_in(schema)
        kinds = {name: plain(_field(schema, name, self._where).type) for name in self.columns}
        for each in self._spec.aggregates:
            self._check(each, kinds[each.column])
        for number, name in enumerate(self.columns):
            found[f"v{number}"] = (name, kinds[name])
        for number, part in enumerate(self.parts):
            state = state_of(part.op, kinds[part.column])
            assert state is not None  # checked
            found[f"s{number}"] = (part.column, state)
        return self._take(found)

    def add_states(self, schema: pa.Schema) -> bool:
        """Takes the schema of states. Returns whether a type has changed."""
        if self._is_seen("states", schema):
            return False
        found = self._keys_in(schema)
        for number, part in enumerate(self.parts):
            if part.name not in schema.names:
                names = ", ".join(map(repr, schema.names))
                raise InvalidBatch(
                    f"{self._where}: a grouping with final=True takes the states that one with "
                    "partial=True and the same by and aggregates emits; a batch has no column "
                    f"{part.name!r}, but {names}"
                )
            found[f"s{number}"] = (part.name, _field(schema, part.name, self._where).type)
        return self._take(found)

    @property
    def of_rows(self) -> list[Column]:
        values = [(f"v{number}", name) for number, name in enumerate(self.columns)]
        return self._of_keys + [
            Column(name, inside, held(self._kinds.get(inside, pa.null())))
            for inside, name in values
        ]

    @property
    def of_states(self) -> list[Column]:
        return self._of_keys + [
            Column(part.name, f"s{number}", held_state(part.op, kind))
            for number, (part, kind) in enumerate(zip(self.parts, self.state_kinds))
        ]

    @property
    def _of_keys(self) -> list[Column]:
        if not self._spec.by:
            return [Column(None, "k0", pa.int8())]
        return [
            Column(name, key, held(kind))
            for name, key, kind in zip(self._spec.by, self.keys, self.key_kinds)
        ]

    @property
    def key_kinds(self) -> list[pa.DataType]:
        """The types of the columns of the key in batches."""
        return [self._kinds.get(key, pa.null()) for key in self.keys[: len(self._spec.by)]]

    @property
    def state_kinds(self) -> list[pa.DataType]:
        """The types of the parts in batches of states."""
        kinds = [self._kinds.get(f"s{number}") for number in range(len(self.parts))]
        return [
            state_of(part.op, pa.null()) if kind is None else kind
            for part, kind in zip(self.parts, kinds)
        ]

    @property
    def held_kinds(self) -> list[pa.DataType]:
        """All types that kernels meet. A list of distinct values has the type of the values."""
        states = [held_state(part.op, kind) for part, kind in zip(self.parts, self.state_kinds)]
        values = [held(kind) for name, kind in self._kinds.items() if name.startswith("v")]
        distinct = {n for n, part in enumerate(self.parts) if part.op == "distinct"}
        return [
            *map(held, self.key_kinds),
            *values,
            *(kind.value_type if n in distinct else kind for n, kind in enumerate(states)),
        ]

    @property
    def is_known(self) -> bool:
        return bool(self._seen)

    def no_groups(self) -> pa.RecordBatch:
        """No states, with the names and types of memory."""
        fields = [(each.inside, each.kind) for each in self.of_states]
        return pa.RecordBatch.from_pylist([], pa.schema(fields))

    def no_rows(self) -> pa.RecordBatch:
        """The state of a group without rows."""
        none = {"count": 0, "distinct": []}
        state = {f"s{number}": none.get(part.op) for number, part in enumerate(self.parts)}
        return pa.RecordBatch.from_pylist([state], self.no_groups().schema)

    def _is_seen(self, what: str, schema: pa.Schema) -> bool:
        known = self._seen.get(what)
        if known is not None and known.equals(schema):
            return True
        self._seen[what] = schema
        return False

    def _keys_in(self, schema: pa.Schema) -> dict[str, tuple[str, pa.DataType]]:
        found = {}
        for key, name in zip(self.keys, self._spec.by):
            kind = plain(_field(schema, name, self._where).type)
            if not is_ordered(kind):
                raise InvalidBatch(
                    f"{self._where}: column {name!r} is {kind}, which cannot be the key of a "
                    "grouping; group by columns of numbers, strings, bytes, bools, dates or times"
                )
            found[key] = (name, kind)
        return found

    def _check(self, aggregation: Aggregation, kind: pa.DataType) -> None:
        if any(state_of(part.op, kind) is None for part in parts_of(aggregation)):
            takes = "numbers and bools" if aggregation.function in _ADD else _ORDERED
            raise InvalidBatch(
                f"{self._where}: aggregate {aggregation.name!r} is the {aggregation.function} of "
                f"column {aggregation.column!r}, which is {kind}; {aggregation.function} takes "
                f"{takes}. Convert the column before, for example with map_batches"
            )

    def _take(self, found: dict[str, tuple[str, pa.DataType]]) -> bool:
        changed = False
        for inside, (name, kind) in found.items():
            known = self._kinds.get(inside)
            if known is None or (_is_nothing(known) and not _is_nothing(kind)):
                self._kinds[inside] = kind
                changed = True
            elif not _is_nothing(kind) and not have_same_values(kind, known):
                raise other_type(name, known, kind, self._where)
        return changed


_ADD = ("sum", "mean")
_ORDERED = "numbers, strings, bytes, bools, dates and times"


def _field(schema: pa.Schema, name: str, where: str) -> pa.Field:
    return schema.field(position_of(schema, name, where))


def _is_nothing(kind: pa.DataType) -> bool:
    return bool(of.is_null(kind) or (of.is_list(kind) and of.is_null(kind.value_type)))
