"""The sinks of a durable job together: all are prepared or none, all are held or none, and all are
committed or none, by whichever process completes the job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pyrite import processors as p
from pyrite.collections import MemoryCollections
from pyrite.context import ProcessorContext
from pyrite.dag import DAG, from_
from pyrite.engine.execution import MetaSuppliers, Plan
from pyrite.engine.member import LifeCycleFailed, RunContext
from pyrite.processors.files import committing
from pyrite.processors.loops.steps import TargetIsTaken
from tests.processors.files.jobs import contents


class Job:
    """A durable job that writes the same to two folders, and a third sink."""

    def __init__(self, folder: Path, third: Any) -> None:
        dag = DAG()
        read = dag.vertex("read", p.read_items(["new"]))
        sinks = {"a": p.write_files(folder / "a"), "b": p.write_files(folder / "b"), "c": third}
        for ordinal, (name, sink) in enumerate(sinks.items()):
            dag.edge(from_(read, ordinal).to(dag.vertex(name, sink, local_parallelism=1)))
        self.run = RunContext(
            job_name="job",
            job_id="j",
            execution_id="e",
            member_count=1,
            collections=MemoryCollections(),
        )
        self.plan = Plan.of(dag, member_count=1, default_parallelism=1)

    def sinks(self) -> MetaSuppliers:
        """As another process has them."""
        plan = self.plan
        return MetaSuppliers(self.run, plan.topology, plan.suppliers, plan.sinks)

    def reports(self) -> dict[str, list[Any]]:
        reports = {}
        for name, sink in self.plan.sinks:
            writer = sink.open(
                ProcessorContext(**self.run.fields(name, 1), member_index=0, local_index=0)
            )
            writer.write([name])
            reports[name] = [writer.complete()]
        return reports

    def complete(self, reports: dict[str, list[Any]]) -> None:
        sinks = self.sinks()
        sinks.resume_sinks()
        try:
            with sinks.committed(reports):
                pass
        except LifeCycleFailed as failed:
            sinks.close(failed.failed.error)
            raise


def test_the_sinks_are_prepared_by_one_process_and_committed_by_others(tmp_path: Path) -> None:
    job = Job(tmp_path, p.write_list("out"))
    job.sinks().prepare_sinks()
    reports = job.reports()
    for _ in range(2):
        job.complete(reports)
    assert contents(tmp_path / "a") == {"part-00000.txt": "a\n"}
    assert contents(tmp_path / "b") == {"part-00000.txt": "b\n"}


def test_if_one_sink_cannot_be_prepared_nothing_is_left_of_the_others(tmp_path: Path) -> None:
    job = Job(tmp_path, p.write_spark(lambda df: None, "word string"))
    with pytest.raises(LifeCycleFailed, match="writes a Spark DataFrame") as no:
        job.sinks().prepare_sinks()
    assert no.value.failed.vertex == "c"
    assert os.listdir(tmp_path) == []


def test_if_one_target_is_taken_none_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "PATIENCE", 0.0)
    job, other = Job(tmp_path, p.write_list("out")), Job(tmp_path, p.write_list("out"))
    job.sinks().prepare_sinks()
    other.run.execution_id = "other"
    reports, (_, b) = job.reports(), other.plan.sinks
    held = b[1].begin(other.sinks()._context("b"))
    with pytest.raises(LifeCycleFailed) as no:
        job.complete(reports)
    assert isinstance(no.value.failed.error, TargetIsTaken)
    held.discard()
    job.complete(reports)
    assert contents(tmp_path / "a") == {"part-00000.txt": "a\n"}


def test_if_one_sink_cannot_be_committed_none_is(tmp_path: Path) -> None:
    job = Job(tmp_path, p.write_list("out"))
    job.sinks().prepare_sinks()
    reports = job.reports()
    (tmp_path / "b" / "part-00000.txt").write_text("mine")
    with pytest.raises(LifeCycleFailed, match="which no job has written"):
        job.complete(reports)
    assert os.listdir(tmp_path) == ["b"]
    assert os.listdir(tmp_path / "b") == ["part-00000.txt"]


def test_a_process_that_stops_in_the_middle_and_lives_on_leaves_the_sinks_to_another(
    tmp_path: Path,
) -> None:
    job = Job(tmp_path, p.write_list("out"))
    job.sinks().prepare_sinks()
    reports, stopped = job.reports(), job.sinks()
    stopped.resume_sinks()
    with pytest.raises(InterruptedError), stopped.committed(reports):
        raise InterruptedError
    stopped.let_sinks_go()
    assert contents(tmp_path / "a") == {}
    job.complete(reports)
    assert contents(tmp_path / "a") == {"part-00000.txt": "a\n"}
