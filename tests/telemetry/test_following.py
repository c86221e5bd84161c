"""Whoever follows runs is told of each end once, before what it has to tell is sent."""

from __future__ import annotations

import threading

from pyrite import Instance, Pipeline, processors
from pyrite.job import Execution
from pyrite.telemetry.following import Following


class Slow(Following):
    """Looks at an end for as long as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun = threading.Event()
        self.may_end = threading.Event()
        self.ended: list[Execution] = []

    def on_end(self, execution: Execution) -> None:
        self.has_begun.set()
        assert self.may_end.wait(10)
        self.ended.append(execution)


def test_it_waits_for_a_thread_that_looks_at_an_end(pyr: Instance) -> None:
    slow, may_run = Slow(), threading.Event()
    pipe = Pipeline()
    pipe.read_from([1]).map(lambda _: may_run.wait(10)).write_to(processors.noop())
    slow.follow()
    execution = pyr.new_light_job(pipe).execute()
    slow.unfollow()
    may_run.set()
    assert slow.has_begun.wait(10)
    threading.Timer(0.05, slow.may_end.set).start()
    slow.settle()
    assert slow.ended == [execution]
