"""What a member or a peer needs to drive normal jobs. Neither knows Spark; whoever starts them
gives them a driver that does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyrite.context import Collections
from pyrite.exchange.collected import Collected
from pyrite.exchange.deployment import Deployment
from pyrite.job import Job
from pyrite.suppliers import ProcessorMetaSupplier


class NormalRun(Protocol):
    """One run of a normal job."""

    def begin(self, start: Callable[[Callable[[], None]], None]) -> None:
        """Runs the job on a thread that `start` takes for it."""

    def cancel(self) -> None:
        """Stops the job, also before it has begun. Returns at once."""

    def metrics(self) -> dict[str, Any]: ...

    def progress(self) -> list[tuple[str, int, int]]: ...

    def timings(self) -> dict[str, float]: ...

    def members(self) -> list[dict[str, Any]]: ...

    def page(self) -> str | None: ...


class Driver(Protocol):
    def new_run(
        self,
        job: Job,
        execution_id: str,
        *,
        deployment: Deployment,
        collections: Collections,
        on_end: Callable[[BaseException | None], None],
        on_running: Callable[[], None],
        hand_over: HandOver | None = None,
    ) -> NormalRun: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Uncommitted:
    """What the tasks of a job have left for whoever completes it."""

    reports: Mapping[str, Sequence[Any]]
    """By vertex, what the writers of a sink have reported."""
    collected: Sequence[Collected]
    """The additions to named maps and lists."""
    meta_suppliers: Sequence[tuple[str, ProcessorMetaSupplier]]
    """The user's, by vertex. They are still to be committed and closed."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """For a run of a job that somebody else completes: its sinks are prepared already, and the run
    commits nothing. When its tasks have succeeded, it calls `take`, and then `on_end`."""

    start: str
    """Names this start of the job. Another process may start the same job again while tasks of this
    start still run; no start uses the name of another."""
    take: Callable[[Uncommitted], None]


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """What a new Spark session is started with; see `pyrite.instance()`."""

    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
