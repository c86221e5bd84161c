"""A forked process runs jobs on its own threads, and never waits for a lock or thread of its
parent."""

from __future__ import annotations

import concurrent.futures
import gc
import os
import pickle
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

import pyrite
from pyrite import DAG, Instance, PyriteError, between
from pyrite import processors as p
from pyrite.collections import MemoryCollections, MemoryList
from tests.engine.test_cancel_and_failure import Forever, works
from tests.test_instances import small

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


def in_child(call: Callable[[], Any]) -> Any:
    """Forks a process and calls a function there. Returns its result or error. Kills a child that
    hangs."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        try:
            answer = call()
        except BaseException as error:
            answer = error
        os.write(writer, pickle.dumps(answer))
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answers:
        said = answers.read()
    assert os.waitpid(pid, 0)[1] == 0, "the child hung"
    return pickle.loads(said)


def forever() -> DAG:
    dag = DAG()
    dag.vertex("forever", Forever)
    return dag


def test_a_light_job_runs_in_a_forked_child(pyr_of_any_size: Instance) -> None:
    assert works(pyr_of_any_size)
    assert in_child(lambda: works(pyr_of_any_size))
    assert works(pyr_of_any_size)


def test_a_light_job_runs_in_the_child_of_a_child(pyr: Instance) -> None:
    assert in_child(lambda: in_child(lambda: works(pyr)))


def test_multiprocessing_with_fork_runs_light_jobs(pyr: Instance) -> None:
    import multiprocessing

    with concurrent.futures.ProcessPoolExecutor(
        2, mp_context=multiprocessing.get_context("fork")
    ) as pool:
        results = [pool.submit(_works, id(pyr)) for _ in range(4)]
        assert all(result.result(20) for result in results)


def _works(instance: int) -> bool:
    (found,) = [each for each in gc.get_objects() if id(each) == instance]
    return works(found)


@pytest.mark.parametrize(
    "wait",
    [
        lambda execution: execution.result(),
        lambda execution: concurrent.futures.wait([execution]) and execution.result(),
        lambda execution: next(concurrent.futures.as_completed([execution])).result(),
    ],
)
def test_a_job_of_the_parent_cannot_be_waited_for_in_the_child(pyr: Instance, wait: Any) -> None:
    execution = pyr.new_light_job(forever()).execute()
    said = in_child(lambda: wait(execution))
    assert isinstance(said, PyriteError)
    assert f"runs in process {os.getpid()}, which this process was forked from" in str(said)
    assert in_child(pyr.light_jobs) == []
    assert not execution.done()
    execution.cancel()
    execution.exception(10)


def test_a_job_that_has_ended_keeps_its_outcome_in_the_child(pyr: Instance) -> None:
    execution = pyr.new_light_job(small()).execute()
    execution.result(10)
    assert in_child(execution.result) is None
    assert in_child(lambda: execution.status.value) == "completed"


def test_a_callback_of_the_parents_job_is_not_called_in_the_child(pyr: Instance) -> None:
    called = threading.Event()
    execution = pyr.new_light_job(forever()).execute()
    execution.add_done_callback(lambda _: called.set())
    assert in_child(lambda: called.wait(0.1)) is False
    execution.cancel()
    assert called.wait(10)


@contextmanager
def held(*locks: Any) -> Iterator[None]:
    """Holds locks in another thread."""
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            taken.set()
            assert done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(10)
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_locks_that_the_parent_holds_do_not_block_the_child(pyr: Instance) -> None:
    running = pyr.new_light_job(forever()).execute()
    ended = pyr.new_light_job(small("works")).execute()
    ended.result(10)
    stored, collections = pyr.list("works"), pyr._collections
    assert isinstance(stored, MemoryList)
    assert isinstance(collections, MemoryCollections)
    locks = [
        pyr._lock,
        pyr._service.workers[0]._lock,
        pyr._service.threads._lock,
        pyr._driver.session._lock,
        collections._lock,
        stored._lock,
        ended._condition,
        running._condition,
    ]

    def use_everything() -> bool:
        ended.result()
        assert isinstance(running.exception(), PyriteError)
        pyr.map("a new one")["key"] = 1
        assert works(pyr)
        pyr.close()
        return True

    with held(*locks):
        assert in_child(use_everything) is True
    running.cancel()
    running.exception(10)


def test_closing_in_the_child_waits_for_nothing_and_leaves_the_parent_alone(pyr: Instance) -> None:
    execution = pyr.new_light_job(forever()).execute()

    def close() -> str:
        pyr.close()
        try:
            works(pyr)
        except PyriteError as error:
            return str(error)
        return ""

    assert "this instance is closed" in in_child(close)
    assert not execution.done()
    assert works(pyr)
    execution.cancel()
    execution.exception(10)


def test_a_function_of_a_job_may_fork_and_run_a_light_job_in_the_child(pyr: Instance) -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items([1]))
    forks = dag.vertex("forks", p.map(lambda n: in_child(lambda: works(pyr))))
    sink = dag.vertex("sink", p.write_list("said"))
    pyr.new_light_job(dag.edge(between(source, forks)).edge(between(forks, sink))).execute().result(
        30
    )
    assert list(pyr.list("said")) == [True]


def test_instances_and_executions_are_not_kept_alive() -> None:
    with pyrite.instance() as pyr:
        execution = pyr.new_light_job(small()).execute()
        execution.result(10)
    known: list[Any] = [weakref.ref(pyr), weakref.ref(execution)]
    del pyr, execution
    gc.collect()
    assert [each() for each in known] == [None, None]
