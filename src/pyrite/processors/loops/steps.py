"""Steps describe the work of the ready-made processors, so that one loop can run several of them.

A step is plain data. It reads items, transforms them (items in, items out), folds them (items in,
results at the end), or writes them. `loop` generates the code for steps, and `chain` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyrite.bad_records import Handling
from pyrite.context import MetaSupplierContext, ProcessorContext
from pyrite.errors import ProcessorError


@dataclass(slots=True)
class Lines:
    """The lines that a step adds to a loop, and the values that they use.

    A line that starts with `for` opens a loop: all lines after it, also those of later steps, go
    into that loop. Lines of other blocks have their own indentation. `value` is the variable that
    holds the item after the step.
    """

    value: str
    code: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    counts: bool = False
    """Whether the lines count the items that they emit in `n<index>`. If not, the step emits one
    item for each item."""
    setup: list[str] = field(default_factory=list)
    """The lines that go before the loop."""
    whole: str = ""
    """The variable with the list that the last loop of the lines iterates over. Empty if there is
    none."""
    names_item: bool = True
    """Whether an error of the lines names the item that they work on."""

    def handling_errors(self, index: int, value: str, handling: Handling) -> Lines:
        """The same lines, which try again if they raise, and then pass the item to `bad<index>`.
        They have no loops that later steps are in."""
        code = tried(self.code or ["pass"], index, value, handling)
        if not self.counts:
            code.append(f"n{index} += 1")
        return replace(self, code=code, counts=True)


def tried(code: list[str], index: int, value: str, handling: Handling) -> list[str]:
    """The lines that do what `code` does and handle its errors. `code` may go on with the next item
    by `continue`."""
    if handling.retry is None:
        return [
            "try:",
            *(f"    {line}" for line in code),
            f"except Exception as error{index}:",
            f"    bad{index}({value}, error{index})",
            "    continue",
        ]
    return [
        f"failures{index} = 0",
        "while True:",
        "    try:",
        *("        " + line.replace("continue", f"drop{index} = True; break") for line in code),
        f"        drop{index} = False",
        "        break",
        f"    except Exception as error{index}:",
        f"        failures{index} += 1",
        f"        until{index} = bad{index}.again(error{index}, failures{index})",
        f"        if until{index} is None:",
        f"            bad{index}({value}, error{index})",
        f"            drop{index} = True",
        "            break",
        f"    while bad{index}.waits(until{index}): yield",
        f"if drop{index}: continue",
    ]


class Step:
    """The work of one vertex."""

    __slots__ = ()
    columnar: bool = False
    """Whether it works on batches of rows. Columnar steps are fused with each other only."""
    absorbs_input: bool = False
    """Whether it reads all its input before it emits anything."""
    may_block: bool = False
    """Whether it waits for others, such as a database, so that it needs a thread of its own."""

    def without_secrets(self) -> Step:
        """The same, as it is kept with an error of the job."""
        return self


class ReadStep(Step):
    """Emits items from outside the DAG."""

    __slots__ = ()
    may_hold_none = True
    heavy = False
    """Whether its items are large, such as batches of rows, so that only one is read at a time."""
    looks = False
    """Whether it looks for what it reads, such as the files that match a pattern. That is done once
    for all processors, wherever they are: each might find something else."""

    def found(self, vertex: str, readers: int) -> ReadStep:
        """The same, after it has looked. So many processors will read."""
        return self

    def found_once(self, context: ProcessorContext) -> Any:
        """The same for all processors of an execution."""
        vertex, readers = context.vertex_name, context.total_parallelism
        return context.once(("found", vertex), lambda: self.found(vertex, readers))

    def open(self, context: ProcessorContext) -> Iterator[Any]:
        """The items that this processor must emit. Each item belongs to exactly one processor."""
        raise NotImplementedError

    def going_on(self) -> ReadStep:
        """The same source, except that it has a BadRecord in place of each item that it cannot
        read, where it can go on after that."""
        return self


class Transform(Step):
    """Turns each item into any number of items. It keeps no state between items."""

    __slots__ = ()

    def lines(self, index: int, value: str, vertex: str) -> Lines:
        raise NotImplementedError

    def handling_lines(self, index: int, value: str, vertex: str, handling: Handling) -> Lines:
        """The lines that pass an item for which a function raises to `bad<index>`. What was made of
        it before is not emitted."""
        return self.lines(index, value, vertex).handling_errors(index, value, handling)


class Fold(Step):
    """Adds all items to a state, and emits results when the input has ended.

    `new_state` makes the state; the lines use it as the variable `state`.
    """

    __slots__ = ()
    absorbs_input = True
    finishes = False
    """Whether `finished` calls a user's function for each result."""
    is_grouping = False
    """Whether the result for a key depends only on the items with that key."""
    only_counts = False
    """Whether the fold only counts equal items, so that its state is a dict from item to count."""
    stops: tuple[str, ...] = ()
    """The source vertices whose items nobody needs when the state of one processor is full."""

    def new_state(self) -> Any:
        raise NotImplementedError

    def lines(
        self, index: int, value: str, vertex: str, check_new_key: Callable[[Any], Any] | None
    ) -> Lines:
        """The lines that add one item to the state. They call `check_new_key`, if it is given, for
        each new key."""
        raise NotImplementedError

    def handling_lines(
        self,
        index: int,
        value: str,
        vertex: str,
        check_new_key: Callable[[Any], Any] | None,
        handling: Handling,
    ) -> Lines:
        """The lines that pass an item for which a function raises to `bad<index>`. They leave the
        state as it was, unless a function has changed it in place before it raised."""
        lines = self.lines(index, value, vertex, check_new_key)
        return lines.handling_errors(index, value, handling)

    def key_function(self) -> Callable[[Any], Any] | None:
        """The function from an item to its key. None if the fold does not group by key."""
        return None

    def is_full(self, state: Any) -> bool:
        """Whether more items would not change the state."""
        return False

    def results(self, state: Any) -> list[Any]:
        """The results to emit. The caller does not use the state afterwards."""
        raise NotImplementedError

    def late_function(self) -> Callable[[Any], Any] | None:
        """The user's function that `results` calls with each item of the state; None if it calls
        none. An error is about the item for which it raises."""
        return None

    def finished(self, results: Iterable[Any]) -> list[Any]:
        """The items to emit for some of the results. It is called only if `finishes` is true."""
        raise NotImplementedError

    def save(self, state: Any) -> Iterable[tuple[Any, Any]]:
        raise NotImplementedError

    def restore(self, state: Any, key: Any, value: Any) -> None:
        raise NotImplementedError


class WriteStep(Step):
    """Writes items to a place outside the DAG."""

    __slots__ = ()
    commits = False
    """Whether written items become visible only with `commit`."""
    writes_through = False
    """Whether its writers hold nothing back: what was written is in the collection."""

    @property
    def takes_text_letters(self) -> bool:
        """Whether the items of dead letters must be texts, because a column has one type."""
        return False

    def open(self, context: ProcessorContext) -> Writer:
        raise NotImplementedError

    def checker(self, vertex: str) -> Callable[[Any], object] | None:
        """A function that raises BadItem for an item that cannot be written; None if that is found
        out only when many items are written together. Only without this, a sink has no
        `on_error`."""
        return None

    def target(self) -> str | None:
        """A description of the target if a job may not have any two sinks that write to it;
        otherwise None."""
        return None

    def shares_target(self) -> bool:
        """Whether other sinks that say so, too, may write to the same target."""
        return False

    def begin(self, context: MetaSupplierContext) -> Commit:
        """Called for each execution of a sink that commits, on the coordinator, before any writer
        is opened. Raises, before any work is done, if it can be known that nothing could be
        written."""
        raise NotImplementedError

    def prepare(self, context: MetaSupplierContext) -> None:
        """Called for each sink of a durable job when it is submitted, before any writer is opened.
        It does what `begin` does, except that it holds nothing that ends with this process. Raises
        if the sink cannot be written to."""
        if self.commits:
            raise ProcessorError(
                f"vertex '{context.vertex_name}' cannot be in a durable job, because its sink "
                f"{type(self).__name__} cannot be committed again by another process if one dies; "
                "write files with write_files()"
            )

    def resume(self, context: MetaSupplierContext) -> Commit:
        """The commit of an execution that was prepared, in the process that completes or discards
        it. If that process dies, another one resumes and calls the same methods with the same
        reports, whatever the first one has done. Raises TargetIsTaken; then try again later."""
        raise NotImplementedError

    def discard(self, context: MetaSupplierContext) -> None:
        """Removes what is left of an execution that was prepared and has not completed. May be
        repeated."""
        self.resume(context).discard()


class Commit:
    """The coordinator's part of one execution of a sink. If the job completes, `commit`, `seal` and
    `finish` are called, otherwise `discard`. `undo` is called if a later commit of the same job
    fails."""

    def commit(self, reports: Sequence[Any]) -> None:
        """Makes the items of a completed job visible. `reports` has the return values of
        `Writer.complete`."""

    def seal(self) -> None:
        """Called when `commit` of all sinks of the job has returned, for what cannot be undone:
        that is done here, where little else can fail."""

    def undo(self) -> None:
        """Restores the target as it was before `commit`. It is called if this `commit` or `seal`,
        or a later one of the same job, has raised."""

    def finish(self) -> None:
        """Called when all sinks of the job are committed. `undo` is not called after this."""

    def discard(self) -> None:
        """Removes what the writers of a failed job have written."""

    def let_go(self) -> None:
        """Releases what the commit holds, and changes nothing, so that the execution can be resumed
        later. `finish` and `discard` do this too."""


class Writer:
    """Writes the items of one processor of a sink."""

    def write(self, items: list[Any]) -> None:
        raise NotImplementedError

    def complete(self) -> Any:
        """Called when all items have been written. Its return value is passed to `Commit.commit`,
        unless Spark has taken the result of another attempt of the task."""

    def close(self) -> None:
        """Called exactly once, also after a failure."""


class TargetIsTaken(ProcessorError):
    """Another job is writing to the target of a sink."""


class BadItem(ProcessorError):
    """Raised by a step that cannot process an item. `item` is that item."""

    def __init__(self, message: str, item: Any) -> None:
        super().__init__(message)
        self.item = item

    def __reduce__(self) -> tuple[Any, ...]:
        return BadItem, (str(self), self.item)
