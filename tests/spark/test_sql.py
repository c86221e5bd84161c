"""Databases in jobs on Spark, whose tasks may run more than once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pyrite import Instance, JobConfig, Pipeline
from pyrite import processors as p
from tests.databases import Database
from tests.postgres import PostgresServer


@pytest.mark.parametrize("goes_on", [False, True], ids=["last stage", "first stage"])
def test_a_task_that_is_run_again_writes_its_rows_once(
    pyr: Instance, shared_postgres: PostgresServer, tmp_path: Path, goes_on: bool
) -> None:
    database = Database(shared_postgres.new_schema())
    database.run("CREATE TABLE numbers (n INTEGER)")
    marker = tmp_path / "failed"

    def fails_once(n: int) -> dict[str, Any]:
        if n == 900 and not marker.exists():
            marker.touch()
            raise OSError("once")
        return {"n": n}

    pipe = Pipeline()
    rows = pipe.read_from(range(1000)).map(fails_once)
    rows.write_to(p.write_sql(database.url, "numbers", batch_size=50))
    if goes_on:
        rows.count().write_to(p.write_list("counts"))
    pyr.new_job(pipe, JobConfig(members=2)).execute().result(timeout=60)
    assert marker.exists()
    assert database.rows("SELECT count(*), count(DISTINCT n) FROM numbers") == [(1000, 1000)]
    assert database.tables() == ["numbers"]
