"""The errors that Pyrite raises. Each message says what was wrong, where, and what to do."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any, Protocol


class PyriteError(Exception):
    """The base class of all errors of Pyrite."""


class PyriteWarning(UserWarning):
    """The category of the warnings that Pyrite gives with Python's `warnings`."""


class InvalidDAG(PyriteError, ValueError):
    """The DAG cannot run; the message names the vertices or the edge that must change."""


class ProcessorError(PyriteError):
    """A processor or a supplier broke its contract: it emitted None, returned a wrong type, and so
    on."""


class Replayable(Protocol):
    """What has failed, so that it can be run again."""

    def __call__(self, *, debugger: bool) -> list[Any]: ...

    def in_dag(self, dag: Any) -> Replayable: ...


class JobFailed(PyriteError):
    """A job ended with an error. `__cause__` is the user's own exception, with its traceback.

    `vertex`, `processor` (its index), `edge` and `item` say where it happened. Each is None if it
    does not apply.
    """

    def __init__(
        self,
        message: str,
        *,
        vertex: str | None = None,
        processor: int | None = None,
        edge: str | None = None,
        item: Any = None,
        replayable: Replayable | None = None,
    ) -> None:
        super().__init__(message)
        self.replayable = replayable
        self.vertex = vertex
        self.processor = processor
        self.edge = edge
        self.item = item

    def replay(self, *, debugger: bool = False) -> list[Any]:
        """Runs the vertex that failed on the item that failed, in this process, and so raises what
        it raised. With `debugger=True`, Python's debugger opens where it is raised. If nothing is
        raised this time, returns the items that the vertex emits, with a warning.

        An item that the vertex changed before it raised is replayed as it was left. A vertex that
        keeps a state, such as a grouping, starts with a new one, and a warning says so. Raises
        PyriteError if there is nothing to replay: the vertex failed without an item, it is a sink,
        or the item was too large to travel to this process.
        """
        if self.replayable is None:
            raise PyriteError("there is nothing to replay: it is not known which step has failed")
        return self.replayable(debugger=debugger)

    def __reduce__(self) -> tuple[Any, ...]:
        return _job_failed, (
            str(self),
            self.vertex,
            self.processor,
            self.edge,
            _as_it_travels(self.item),
            self.__cause__,
            self.replayable,
        )


class InvalidWorkload(PyriteError, ValueError):
    """A workload or its schedule cannot run. `problems` lists all problems, one sentence each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__(self.problems[0] if len(self.problems) == 1 else _listed(self.problems))

    def __reduce__(self) -> tuple[Any, ...]:
        return InvalidWorkload, (self.problems,)


class RunBroken(PyriteError):
    """A run of a workload could not continue: its disk is full, its workers do not start, its
    master was killed, and so on.

    A failed job does not raise this error; it is listed in `run.failed()`. What was recorded stays
    readable, and the run can be resumed.
    """


class JobsFailed(PyriteError):
    """Jobs of a workload are not done: they failed, or did not run because others failed. `jobs`
    has their rows, as in `run.table()`."""

    def __init__(self, message: str, jobs: Sequence[dict[str, Any]]) -> None:
        super().__init__(message)
        self.jobs = list(jobs)

    def __reduce__(self) -> tuple[Any, ...]:
        return JobsFailed, (str(self), self.jobs)


class StoreInUse(PyriteError):
    """Another master is using this store."""


class JobCancelled(PyriteError, CancelledError):
    """The job was cancelled before it completed."""


PROBLEMS_SHOWN = 50


def _listed(problems: list[str]) -> str:
    more = len(problems) - PROBLEMS_SHOWN
    lines = [f"  - {problem}" for problem in problems[:PROBLEMS_SHOWN]] + (
        [f"  and {more} more (see .problems)"] if more > 0 else []
    )
    return "\n".join([f"{len(problems)} things are wrong:", *lines])


def _as_it_travels(item: Any) -> Any:
    """An item, or a description of it if it cannot be pickled."""
    try:
        pickle.dumps(item)
    except Exception:
        return f"<{type(item).__qualname__}, which cannot be pickled>"
    return item


def _job_failed(
    message: str,
    vertex: str | None,
    processor: int | None,
    edge: str | None,
    item: Any,
    cause: BaseException | None,
    replayable: Replayable | None = None,
) -> JobFailed:
    error = JobFailed(
        message, vertex=vertex, processor=processor, edge=edge, item=item, replayable=replayable
    )
    error.__cause__ = cause
    return error
