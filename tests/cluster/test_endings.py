"""How a member ends a normal job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, cast

from pyrite import JobConfig
from pyrite import processors as p
from pyrite.cluster.member import Member
from pyrite.cluster.normal.figures import Ending
from pyrite.cluster.normal.jobs import NormalJobs
from pyrite.cluster.normal.orders import NormalOrder
from pyrite.exchange.driving import Driver
from pyrite.job import Job
from pyrite.wire import messages as m
from pyrite.wire.wire import Connection
from tests.cluster.test_light_jobs import straight


class _SlowToTell:
    """Drives a job, which ends at once, on a Spark that does not tell its page yet."""

    def __init__(self) -> None:
        self.asked, self.may_tell = threading.Event(), threading.Event()

    def new_run(
        self, *_: object, on_end: Callable[[BaseException | None], None], **__: object
    ) -> Any:
        return SimpleNamespace(
            begin=lambda start: start(lambda: on_end(None)),
            metrics=dict,
            progress=list,
            timings=dict,
            members=list,
            page=self._page,
        )

    def _page(self) -> str:
        self.asked.set()
        assert self.may_tell.wait(10)
        return "http://spark/jobs/"


def test_a_member_does_not_wait_for_spark_at_the_end_of_a_job() -> None:
    spark, to_do = _SlowToTell(), SimpleQueue[Callable[[], None]]()
    threads = SimpleNamespace(run=lambda act: threading.Thread(target=act).start())
    member = SimpleNamespace(
        is_closing=False,
        address="here:1",
        collections=None,
        service=SimpleNamespace(threads=threads),
        on_thread=to_do.put,
    )
    answer = Future[m.Answer]()
    jobs = NormalJobs(cast(Member, member), lambda: cast(Driver, spark))
    order = NormalOrder.of(Job(straight(p.noop()), JobConfig(), False)).packed()
    client = cast(Connection, SimpleNamespace(send=answer.set_result))
    jobs.on_drive(client, m.Drive(b"id", order))
    to_do.get(timeout=10)()  # the job begins
    assert spark.asked.wait(10)
    assert to_do.empty()  # the member does other things meanwhile
    spark.may_tell.set()
    to_do.get(timeout=10)()
    assert Ending.unpacked(answer.result(0).outcome).figures.page == "http://spark/jobs/"
