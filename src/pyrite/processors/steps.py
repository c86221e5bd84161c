"""Steps: what the ready-made processors do, described so that a chain of them can be made into one
loop.

A step is plain data. It is a source, a transform (items in, items out), a fold (items in, results
at the end) or a sink. How steps run is the business of `chain`, how their loop is written that of
`loop`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrite.context import MetaSupplierContext, ProcessorContext
from pyrite.errors import ProcessorError


@dataclass(slots=True)
class Lines:
    """The lines that a step adds to a loop, and the values that they use.

    A line is indented by what stands open before it; one that ends in a colon and is not a
    one-liner opens a level. `value` is the variable that holds the item after the step.
    """

    value: str
    code: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    counts: bool = False
    """Whether the lines count in `n<index>` what they let through; else as many come out as go
    in."""
    setup: list[str] = field(default_factory=list)
    """Lines that stand before the loop."""
    whole: str = ""
    """The variable with a list of values, if there is one, that the last loop among the lines goes
    through."""


class Step:
    """One vertex' work."""

    __slots__ = ()


class Source(Step):
    """Makes items out of nothing the DAG knows."""

    __slots__ = ()
    may_hold_none = True

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        """The items that are this processor's share. Every item is in the share of exactly one
        processor."""
        raise NotImplementedError


class Transform(Step):
    """Makes any number of items of each item, one at a time, without memory."""

    __slots__ = ()

    def lines(self, index: int, value: str, vertex: str) -> Lines:
        raise NotImplementedError


class Fold(Step):
    """Takes all items into a state, and emits when there are no more.

    `state` below is what `new_state` made; the lines find it under the name `state`.
    """

    __slots__ = ()
    finishes = False
    """Whether a function of the user's is called for each result."""
    is_grouping = False
    """Whether what is emitted for a key depends on the items of that key only."""
    only_counts = False
    """Whether it emits how many of each item there were, and no more: its state is a dict of these
    numbers."""

    def new_state(self) -> Any:
        raise NotImplementedError

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        """The lines that take one item in. `check_new_key`, if given, is called with each key that
        was not seen before."""
        raise NotImplementedError

    def key_function(self) -> Callable[[Any], Any] | None:
        """The function that takes an item's key, if the fold groups by one."""
        return None

    def results(self, state: Any) -> list[Any]:
        """What there is to emit. The state is not used after this."""
        raise NotImplementedError

    def finished(self, results: Iterable[Any]) -> list[Any]:
        """The items that a part of the results is emitted as, if the fold finishes."""
        raise NotImplementedError

    def save(self, state: Any) -> Iterable[tuple[Any, Any]]:
        raise NotImplementedError

    def restore(self, state: Any, key: Any, value: Any) -> None:
        raise NotImplementedError


class Sink(Step):
    """Takes items out of the DAG."""

    __slots__ = ()
    commits = False
    """Whether what is written becomes visible only by `commit`."""

    def open(self, context: ProcessorContext) -> Writer:
        raise NotImplementedError

    def target(self) -> str | None:
        """What only one sink of a job may write to, in words; None if several may."""
        return None

    def begin(self, context: MetaSupplierContext) -> Commit:
        """Called for each execution of a sink that commits, on the coordinator, before any writer
        is opened. Raises, before any work is done, if it can be known that nothing could be
        written."""
        raise NotImplementedError


class Commit:
    """What one execution of a sink does on the coordinator: `commit` and `finish` if the job
    completes, else `discard`; `undo` if another part of the job could not be committed."""

    def commit(self, reports: Sequence[Any]) -> None:
        """Makes visible what the writers have written; `reports` is what each said when it
        completed."""

    def undo(self) -> None:
        """Puts back what was there before `commit`, which may have raised half-way."""

    def finish(self) -> None:
        """The whole job is committed, and `undo` will not be called any more."""

    def discard(self) -> None:
        """Removes what the writers of a job that failed have written."""


class Writer:
    """What one processor of a sink writes with."""

    def write(self, items: list[Any]) -> None:
        raise NotImplementedError

    def complete(self) -> Any:
        """All items have been written. What it returns is told to the sink's `commit`, if this
        attempt is the one that counts."""

    def close(self) -> None:
        """Called once, also after a failure."""


class BadItem(ProcessorError):
    """An item that a step cannot take."""

    def __init__(self, message: str, item: Any) -> None:
        super().__init__(message)
        self.item = item

    def __reduce__(self) -> tuple[Any, ...]:
        return BadItem, (str(self), self.item)
