"""Rows get into their table once, however often a task or a commit is repeated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyrite import ProcessorError
from pyrite import processors as p
from pyrite.collections import MemoryCollections
from pyrite.context import MetaSupplierContext, ProcessorContext
from pyrite.engine.member import RunContext
from pyrite.processors.loops.steps import Commit, WriteStep
from tests.databases import Database


@pytest.fixture
def numbers(database: Database) -> Database:
    database.run("CREATE TABLE numbers (n INTEGER CHECK (n < 100))")
    return database


def fields(execution: str) -> dict[str, Any]:
    run = RunContext(
        job_name=execution,
        job_id=execution,
        execution_id=execution,
        member_count=1,
        collections=MemoryCollections(),
    )
    return run.fields("write", 1)


def context(execution: str = "one") -> MetaSupplierContext:
    return MetaSupplierContext(**fields(execution))


def sink_to(database: Database, **options: Any) -> WriteStep:
    step = p.write_sql(database.url, "numbers", batch_size=2, **options).step
    assert isinstance(step, WriteStep)
    return step


def staged(
    sink: WriteStep, items: list[int], *, attempt: str = "1", execution: str = "one", **more: Any
) -> Any:
    """The report of a task that has written these."""
    where = fields(execution)
    writer = sink.open(
        ProcessorContext(**where, member_index=0, local_index=0, attempt=attempt, **more)
    )
    try:
        writer.write([{"n": item} for item in items])
        return writer.complete()
    finally:
        writer.close()


def complete(commit: Commit, reports: list[Any]) -> None:
    commit.commit(reports)
    commit.seal()
    commit.finish()


def found(database: Database) -> list[int]:
    return [n for (n,) in database.rows("SELECT n FROM numbers ORDER BY n")]


def test_only_the_attempt_that_was_reported_counts(numbers: Database) -> None:
    sink = sink_to(numbers)
    commit = sink.begin(context())
    staged(sink, [1, 2, 3, 4, 5], attempt="1")
    report = staged(sink, [1, 2, 3], attempt="2")
    complete(commit, [report])
    assert found(numbers) == [1, 2, 3]


def test_attempts_that_must_repeat_report_the_same_and_count_once(numbers: Database) -> None:
    sink = sink_to(numbers)
    commit = sink.begin(context())
    reports = [staged(sink, [1, 2, 3], attempt=str(n), must_repeat=True) for n in range(2)]
    assert reports[0] == reports[1]
    complete(commit, reports[:1])
    assert found(numbers) == [1, 2, 3]


def test_nobody_sees_rows_before_the_seal(numbers: Database) -> None:
    sink = sink_to(numbers)
    commit = sink.begin(context())
    commit.commit([staged(sink, [1, 2, 3])])
    assert found(numbers) == []
    commit.seal()
    assert found(numbers) == [1, 2, 3]
    commit.finish()


def test_a_commit_that_is_undone_leaves_nothing(numbers: Database, tmp_path: Path) -> None:
    sink = sink_to(numbers)
    commit = sink.begin(context())
    commit.commit([staged(sink, [1, 2, 3])])
    commit.undo()
    commit.discard()
    assert (found(numbers), numbers.tables()) == ([], ["numbers"])
    assert [each.name for each in tmp_path.iterdir()] in ([], ["shop.db"])


def test_rows_that_were_lost_are_noticed(numbers: Database, tmp_path: Path) -> None:
    sink = sink_to(numbers)
    commit = sink.begin(context())
    report = staged(sink, [1, 2, 3])
    name = f"sqlite:///{tmp_path}/shop.db-pyrite-one" if numbers.is_sqlite else numbers.url
    staging = Database(name)
    table = next(each for each in staging.tables() if each.startswith("pyrite_staging"))
    staging.run(f"DELETE FROM {table} WHERE n = 2")
    with pytest.raises(ProcessorError, match=r"wrote 3 rows, but its staging table .* has 2"):
        commit.commit([report])
    commit.undo()
    commit.discard()
    assert found(numbers) == []


@pytest.mark.parametrize("dies_before", ["commit", "seal", "finish", "the end"])
def test_a_durable_commit_is_repeated_by_another_process(
    numbers: Database, dies_before: str
) -> None:
    sink = sink_to(numbers)
    sink.prepare(context())
    report = staged(sink, [1, 2, 3])
    first = sink.resume(context())
    for name in ("commit", "seal", "finish"):
        if name == dies_before:
            break
        first.commit([report]) if name == "commit" else getattr(first, name)()
    first.let_go()
    del first
    complete(sink.resume(context()), [report])
    assert found(numbers) == [1, 2, 3]
    assert numbers.tables() == ["numbers", "pyrite_commits"]


def test_a_durable_job_that_is_discarded_leaves_no_rows(numbers: Database) -> None:
    sink = sink_to(numbers)
    sink.prepare(context())
    staged(sink, [1, 2, 3])
    for _ in range(2):
        sink.discard(context())
    assert (found(numbers), numbers.tables()) == ([], ["numbers", "pyrite_commits"])


def test_a_staging_table_that_is_gone_is_an_error(numbers: Database) -> None:
    sink = sink_to(numbers)
    sink.prepare(context())
    report = staged(sink, [1, 2, 3])
    sink.discard(context())
    with pytest.raises(ProcessorError, match="cannot find its staging table"):
        sink.resume(context()).commit([report])


def test_the_next_job_removes_what_a_killed_one_has_left(numbers: Database, tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from tests.databases import Database\n"
        "from tests.processors.sql.test_commits import context, sink_to, staged\n"
        "sink = sink_to(Database(sys.argv[1]))\n"
        "sink.begin(context('killed'))\n"
        "sink.prepare(context('durable'))\n"
        "staged(sink, [1, 2, 3], execution='killed')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", program, numbers.url]
    subprocess.run(command, cwd=Path(__file__).parents[3], check=False)

    def left() -> int:
        files = [each.name for each in tmp_path.iterdir() if each.name[-4:] not in ("-wal", "-shm")]
        names = files if numbers.is_sqlite else numbers.tables()
        return sum("-pyrite-" in name or "_staging_" in name for name in names)

    assert left() == 2
    sink = sink_to(numbers)
    complete(sink.begin(context()), [staged(sink, [7])])
    assert (found(numbers), left()) == ([7], 1)
    sink.discard(context("durable"))
    assert left() == 0
