"""Joins with a dict. The right side arrives first, at ordinal 0, and goes into the dict; then the
left side arrives at ordinal 1, and looks up its matches. Both arrive as `(key, item)`.

The right side is broadcast to all processors, or both sides are partitioned by key. Partitions do
not depend on each other: if they arrive one by one, the dict holds one at a time. The left side is
never held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeAlias

from pyrite.boxes import Inbox, Outbox
from pyrite.keys import one_nan
from pyrite.processor import FailedAt, Processor
from pyrite.processors.groups.aggregates import Nothing
from pyrite.processors.groups.aggregating import first_of
from pyrite.processors.groups.held import about_bytes
from pyrite.processors.joins.key_types import JoinKeys
from pyrite.processors.loops.loop import unhashable_key

How: TypeAlias = Literal["inner", "left", "full", "semi", "anti"]
HOWS: tuple[How, ...] = ("inner", "left", "full", "semi", "anti")
RIGHT, LEFT = 0, 1
"""The ordinals of the two sides."""


@dataclass(frozen=True, slots=True)
class HashJoin:
    """Makes the processors of a join. The two functions made the keys; a warning names them if the
    keys of the two sides cannot match."""

    how: How
    left: Callable[[Any], Any]
    right: Callable[[Any], Any]
    where: str = field(default="a join", compare=False)
    """How messages name the join."""

    def __call__(self) -> _HashJoin:
        return _HashJoin(self)

    def partition_key(self) -> Callable[[Any], Any]:
        """If both edges are partitioned by this key, each partition can be joined by itself."""
        return first_of


class _HashJoin(Processor):
    polls = False

    def __init__(self, join: HashJoin) -> None:
        self._join = join
        self._how = join.how
        self._keeps_items = join.how not in ("semi", "anti")
        self._table: dict[Any, list[Any]] = {}
        """The items of the right side by key; for semi and anti, only the keys."""
        self._alone: list[Any] = []
        """The items of the right side, of a full join, whose key is None: they match nothing."""
        self._matched: set[Any] = set()
        """The keys of a full join that both sides have."""
        self._rest: list[Any] | None = None
        """What is left to emit of a full join whose sides have ended; the last item goes first."""
        self._paused: Iterator[None] | None = None
        self._has_compared = False
        self._pairs: Any = iter(())
        """The pairs of the inbox that are not looked at yet."""
        self._out: list[Any] = []

    def attach(self, outbox: Outbox) -> None:
        super().attach(outbox)
        if len(outbox.buckets) == 1:
            self._out = outbox.buckets[0]

    def process(self, ordinal: int, inbox: Inbox) -> None:
        if self.outbox.is_full():
            return
        pairs = inbox.pending()
        try:
            if ordinal == RIGHT:
                taken = self._add(pairs)
            elif self._keeps_items:
                taken = self._look_up(pairs)
            else:
                taken = self._filter(pairs)
        except TypeError as error:
            function = self._join.right if ordinal == RIGHT else self._join.left
            raise unhashable_key(function, self._last(inbox)[0]) or error from None
        finally:
            self._deliver()
        inbox.remove(taken)

    def complete(self) -> bool:
        return self.end_partition()

    def end_partition(self) -> bool:
        """Emits what is left, and forgets both sides. The caller must know that no more items with
        their keys will come. Returns False if the outbox is full; then call it again."""
        if self._rest is None:
            self._rest = self._unmatched() if self._how == "full" else []
        room = max(0, self.outbox.room())
        if self._rest and room:
            self.outbox.add_all(self._rest[-room:][::-1])
            del self._rest[-room:]
        if self._rest:
            return False
        self._rest = None
        self._table, self._alone, self._matched = {}, [], set()
        return True

    def save_snapshot(self) -> Iterable[tuple[Any, Any]]:
        if self._rest is not None:
            return [(("rest", number), item) for number, item in enumerate(self._rest)]
        return [
            *((("right", key), items) for key, items in self._table.items()),
            *((("matched", key), True) for key in self._matched),
            *((("alone", number), item) for number, item in enumerate(self._alone)),
        ]

    def restore_snapshot(self, key: Any, value: Any) -> None:
        what, of = key
        if what == "right":
            self._table[one_nan(of)] = value
        elif what == "matched":
            self._matched.add(one_nan(of))
        elif what == "alone":
            self._alone.append(value)
        else:
            self._rest = self._rest or []
            self._rest.append(value)

    @property
    def held_bytes(self) -> int:  # type: ignore[override]
        return about_bytes(self._table) + about_bytes(self._alone)

    def failed_at(self, inbox: Inbox) -> FailedAt:
        return FailedAt(self._last(inbox)[1] if inbox else None)

    def _last(self, inbox: Inbox) -> Any:
        """The pair that was looked at last."""
        pairs = inbox.pending()
        return pairs[max(0, len(pairs) - self._pairs.__length_hint__() - 1)]

    def _add(self, pairs: list[Any]) -> int:
        """Adds items of the right side."""
        table, keeps_items = self._table, self._keeps_items
        self._pairs = iter(pairs)
        for key, item in self._pairs:
            if key in table:
                if keeps_items:
                    table[key].append(item)
                continue
            if type(key) is not str and type(key) is not int:
                if key is Nothing.KEY:
                    self._alone.append(item)
                    continue
                key = one_nan(key)
            if keeps_items:
                table.setdefault(key, []).append(item)
            else:
                table[key] = []
        return len(pairs)

    def _filter(self, pairs: list[Any]) -> int:
        """Emits the items of the left side with a match, or those without. Returns how many it took
        before the outbox was full."""
        table, is_wanted = self._table, self._how == "semi"
        self._compare_types(pairs)
        room = self.outbox.room()
        append = self._out.append
        self._pairs = iter(pairs)
        for key, item in islice(self._pairs, room):
            has_match = key in table or (
                type(key) is not str and type(key) is not int and one_nan(key) in table
            )
            if has_match is is_wanted:
                append(item)
        return min(room, len(pairs))

    def _look_up(self, pairs: list[Any]) -> int:
        """Emits pairs of the left side and its matches. Returns 0 until all are emitted: until then
        the items stay in the inbox, because a snapshot is only consistent between two batches."""
        if self._paused is None:
            self._compare_types(pairs)
            self._paused = self._matches(pairs, len(self._out) + self.outbox.room())
        if next(self._paused, self) is not self:
            return 0
        self._paused = None
        return len(pairs)

    def _matches(self, pairs: list[Any], mark: int) -> Iterator[None]:
        """Appends the matches to the output, and yields when that has `mark` items."""
        out, get = self._out, self._table.get
        append = out.append
        keeps_left, is_full = self._how != "inner", self._how == "full"
        self._pairs = iter(pairs)
        for key, item in self._pairs:
            found = get(key)
            if found is None and type(key) is not str and type(key) is not int:
                key = one_nan(key)
                found = get(key)
            if found is not None:
                if is_full:
                    self._matched.add(key)
                for match in found:
                    append((item, match))
                    if len(out) >= mark:
                        yield
            elif keeps_left:
                append((item, None))
                if len(out) >= mark:
                    yield

    def _unmatched(self) -> list[Any]:
        lists = [self._alone, *(v for key, v in self._table.items() if key not in self._matched)]
        return [(None, item) for items in lists for item in items]

    def _deliver(self) -> None:
        """Emits the items that are not in a bucket of the outbox yet."""
        if self._out and len(self.outbox.buckets) != 1:
            self.outbox.add_all(self._out)
            self._out.clear()  # not a new list: a paused loop continues to append to this one

    def _compare_types(self, pairs: list[Any]) -> None:
        """Warns if the keys of the two sides can hardly be equal. Looks once."""
        if not self._has_compared and self._table:
            self._has_compared = True
            join = self._join
            keys = JoinKeys(join.left, join.right, join.where)
            keys.look((key for key, _ in pairs), self._table)
