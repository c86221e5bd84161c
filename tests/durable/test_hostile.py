"""What users and systems do to durable jobs in a folder, each seen to go wrong once."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import pyrite
from pyrite import DAG, JobCancelled, JobConfig, JobFailed, PyriteError, between
from pyrite import processors as p

ONE = JobConfig(members=1)
SECONDS = 60


def chain(*steps: Any) -> DAG:
    dag = DAG()
    vertices = [dag.vertex(f"v{number}", step) for number, step in enumerate(steps)]
    for first, second in pairwise(vertices):
        dag.edge(between(first, second))
    return dag


def slowly(number: int) -> int:
    time.sleep(0.02)
    return number


def until(is_so: Callable[[], bool]) -> None:
    give_up = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < give_up
        threading.Event().wait(0.02)


def test_a_child_that_a_function_forks_does_not_become_a_second_peer(tmp_path: Path) -> None:
    child = tmp_path / "child"

    def forks(number: int) -> int:
        if number == 5 and not child.exists():
            pid = os.fork()
            if pid == 0:
                sys.exit(0)
            os.waitpid(pid, 0)
            child.write_text(str(pid))
        return number

    with pyrite.instance(durable=tmp_path / "jobs", peers=1) as pyr:
        dag = chain(p.read_items(range(3000)), p.map(forks), p.write_list("out"))
        pyr.new_durable_job(dag, ONE).execute().result(SECONDS)
        assert sorted(pyr.list("out")) == list(range(3000))
        assert not Path(f"/proc/{child.read_text()}").exists()


def in_a_pool(number: int) -> int:
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.map(abs, [number])[0]


def test_a_pool_of_processes_in_a_function_ends_without_its_peer(tmp_path: Path) -> None:
    with pyrite.instance(durable=tmp_path, peers=1) as pyr:
        pyr.new_durable_job(chain(p.read_items([1])), ONE).execute().result(SECONDS)
        before = pyr.processes()
        dag = chain(p.read_items([-1, -2]), p.map(in_a_pool), p.write_list("out"))
        pyr.new_durable_job(dag, ONE).execute().result(SECONDS)
        assert sorted(pyr.list("out")) == [1, 2]
        assert pyr.processes() == before


def test_each_job_runs_the_modules_of_its_own_project(tmp_path: Path) -> None:
    """Both are run by the same peer, which the first project has started."""
    script = """
import sys, pyrite, same_name
from pyrite import DAG, JobConfig, between, processors as p
folder, out = sys.argv[1:]
dag = DAG()
a, b = dag.vertex("a", p.read_items(range(3))), dag.vertex("b", p.map(same_name.f))
c = dag.vertex("c", p.write_list(out))
dag.edge(between(a, b)); dag.edge(between(b, c))
with pyrite.instance(durable=folder, peers=1) as pyr:
    pyr.new_durable_job(dag, JobConfig(members=1)).execute().result(60)
    print(list(pyr.list(out)), flush=True)
    sys.stdin.readline()
"""
    running = []
    for name in ("first", "second"):
        project = tmp_path / name
        project.mkdir()
        (project / "same_name.py").write_text(f"def f(n): return {name!r}\n")
        (project / "run.py").write_text(script)
        command = [sys.executable, str(project / "run.py"), str(tmp_path / "jobs"), name]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == str([name] * 3)
    for process in running:
        process.communicate("\n", timeout=SECONDS)


def test_closing_an_instance_does_not_fail_its_job(tmp_path: Path) -> None:
    dag = chain(p.read_items(range(200)), p.map(slowly), p.write_list("out"))
    with pyrite.instance(durable=tmp_path, peers=1) as pyr:
        execution = pyr.new_durable_job(dag, JobConfig(members=1, tries=1)).execute()
        until(lambda: execution.status is pyrite.JobStatus.RUNNING)
    with pytest.raises(PyriteError, match="goes on when its folder is opened again"):
        execution.result(0)
    with pyrite.instance(durable=tmp_path, peers=1) as pyr:
        pyr.job(execution.id).result(SECONDS)
        assert sorted(pyr.list("out")) == list(range(200))


def test_an_instance_that_only_follows_a_job_runs_it_when_the_others_are_gone(
    tmp_path: Path,
) -> None:
    dag = chain(p.read_items(range(100)), p.map(slowly), p.write_list("out"))
    with pyrite.instance(durable=tmp_path, peers=1) as follower:
        with pyrite.instance(durable=tmp_path, peers=1) as submitter:
            id = submitter.new_durable_job(dag, ONE).execute().id
            execution = follower.job(id)
        execution.result(SECONDS)


def test_a_failure_whose_text_is_not_unicode_fails_the_job(tmp_path: Path) -> None:
    def raises(number: int) -> int:
        raise ValueError("half a pair: \ud800")

    with pyrite.instance(durable=tmp_path, peers=1) as pyr:
        dag = chain(p.read_items([1]), p.map(raises), p.write_list("out"))
        with pytest.raises(JobFailed, match="half a pair"):
            pyr.new_durable_job(dag, ONE).execute().result(SECONDS)


def test_processes_start_although_the_path_of_modules_has_something_else_than_strings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])
    with pyrite.instance(durable=tmp_path / "jobs", peers=1) as pyr:
        dag = chain(p.read_items([1]), p.write_list("out"))
        pyr.new_durable_job(dag, ONE).execute().result(SECONDS)


def test_jobs_can_be_listed_in_a_forked_child(tmp_path: Path) -> None:
    with pyrite.instance(durable=tmp_path, peers=1) as pyr:
        assert pyr.jobs() == []
        pid = os.fork()
        if pid == 0:
            os._exit(len(pyr.jobs()))
        assert os.waitpid(pid, 0)[1] == 0


def test_a_supplier_that_cannot_be_pickled_is_a_clear_error_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    class Locked(pyrite.ProcessorMetaSupplier):
        def init(self, context: Any) -> None:
            self.lock = threading.Lock()

        def get(self, addresses: Any) -> Any:
            return [Makes()] * len(addresses)

    class Makes(pyrite.ProcessorSupplier):
        def get(self, count: int) -> Any:
            return [pyrite.AbstractProcessor() for _ in range(count)]

    dag = DAG()
    a, b = dag.vertex("a", Locked()), dag.vertex("b", p.write_files(tmp_path / "out"))
    dag.edge(between(a, b))
    with pyrite.instance(durable=tmp_path / "jobs", peers=1) as pyr:
        with pytest.raises(PyriteError, match="cannot be pickled"):
            pyr.new_durable_job(dag, ONE).execute()
        assert pyr.jobs() == []
        assert not (tmp_path / "out").exists()


def test_a_job_is_either_cancelled_or_its_results_are_there(tmp_path: Path) -> None:
    """Cancelled at some moment around its completion."""
    with pyrite.instance(durable=tmp_path, peers=2) as pyr:
        for turn in range(12):
            dag = chain(p.read_items(range(2000)), p.write_list(f"out{turn}"))
            execution = pyr.new_durable_job(dag, ONE).execute()
            until(lambda e=execution: e.status is not pyrite.JobStatus.STARTING)  # type: ignore[misc]
            threading.Event().wait(turn * 0.004)
            execution.cancel()
            error = execution.exception(SECONDS)
            assert error is None or isinstance(error, JobCancelled)
            assert len(pyr.list(f"out{turn}")) == (2000 if error is None else 0)


def test_a_batch_is_tried_as_often_as_the_job_says(tmp_path: Path) -> None:
    for tries in (1, 3):
        calls = tmp_path / f"calls{tries}"

        def raises(number: int, calls: Path = calls) -> int:
            with calls.open("a") as file:
                file.write("x")
            raise ValueError("always")

        dag = chain(p.read_items([1]), p.map(raises))
        with pyrite.instance(durable=tmp_path / "jobs", peers=1) as pyr:
            job = pyr.new_durable_job(dag, JobConfig(members=2, tries=tries))
            with pytest.raises(JobFailed, match="always"):
                job.execute().result(SECONDS)
        assert len(calls.read_text()) == tries


class Own:
    """Not known to the stored maps."""


def test_a_key_that_cannot_be_stored_fails_the_job_at_its_vertex(tmp_path: Path) -> None:
    with pyrite.instance(durable=tmp_path, peers=1) as pyr:
        dag = chain(p.read_items([1]), p.map(lambda n: (Own(), n)), p.write_map("out"))
        error = pyr.new_durable_job(dag, ONE).execute().exception(SECONDS)
        assert isinstance(error, JobFailed)
        assert error.vertex == "v2"


def test_items_of_a_class_that_the_script_defines_reach_the_peers(tmp_path: Path) -> None:
    script = """
import dataclasses, sys, pyrite
from pyrite import DAG, JobConfig, between, processors as p
@dataclasses.dataclass(frozen=True)
class Point:
    x: int
dag = DAG()
a = dag.vertex("a", p.read_items([Point(1), Point(2)]))
b = dag.vertex("b", p.map(lambda each: (each.x, isinstance(each, Point))))
c = dag.vertex("c", p.write_list("out"))
dag.edge(between(a, b).distributed()); dag.edge(between(b, c))
with pyrite.instance(durable=sys.argv[1], peers=1) as pyr:
    pyr.new_durable_job(dag, JobConfig(members=2)).execute().result(60)
    print(sorted(pyr.list("out")))
"""
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "jobs")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.stdout.strip() == "[(1, True), (2, True)]", done.stderr


def test_a_dag_without_a_sink_completes(tmp_path: Path) -> None:
    with pyrite.instance(durable=tmp_path, peers=1) as pyr:
        for steps in ([p.read_items(range(5))], [p.read_items(["a b"]), p.flat_map(str.split)]):
            pyr.new_durable_job(chain(*steps), JobConfig(members=2)).execute().result(SECONDS)


def test_a_name_of_a_vertex_that_is_not_unicode_is_no_poison(tmp_path: Path) -> None:
    dag = DAG()
    a, b = dag.vertex("a\ud800", p.read_items([1])), dag.vertex("b", p.write_list("out"))
    dag.edge(between(a, b).distributed())
    with pyrite.instance(durable=tmp_path, peers=1) as pyr:
        pyr.new_durable_job(dag, JobConfig(members=2)).execute().result(SECONDS)
        assert list(pyr.list("out")) == [1]


class EndsWhoeverReads(Exception):
    def __reduce__(self) -> Any:
        return (sys.exit, (7,))


def test_an_error_that_cannot_be_unpickled_fails_its_job_and_harms_no_other(tmp_path: Path) -> None:
    def raises(number: int) -> int:
        raise EndsWhoeverReads("so")

    with pyrite.instance(durable=tmp_path, peers=1) as pyr:
        dag = chain(p.read_items([1]), p.map(raises), p.write_list("out"))
        with pytest.raises(JobFailed, match="so"):
            pyr.new_durable_job(dag, ONE).execute().result(SECONDS)
