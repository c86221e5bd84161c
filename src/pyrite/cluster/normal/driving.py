"""What a member needs to drive normal jobs. Members do not know Spark; whoever starts them gives
them a driver that does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from pyrite.context import Collections
from pyrite.errors import PyriteError
from pyrite.exchange.deployment import Deployment
from pyrite.job import Job


class NormalRun(Protocol):
    """One run of a normal job."""

    def begin(self, start: Callable[[Callable[[], None]], None]) -> None:
        """Runs the job on a thread that `start` takes for it."""

    def cancel(self) -> None:
        """Stops the job, also before it has begun. Returns at once."""

    def metrics(self) -> dict[str, Any]: ...

    def progress(self) -> list[tuple[str, int, int]]: ...

    def timings(self) -> dict[str, float]: ...


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
    ) -> NormalRun: ...

    def close(self) -> None: ...


def no_driver() -> NoReturn:
    raise PyriteError(
        "this member runs light jobs only; run normal jobs with pyrite.instance(), or on members "
        "that LocalCluster, `pyrite cluster` or `pyrite member` has started"
    )
