"""Lineage for OpenLineage, with the file transport of its client."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyrite
from pyrite import Pipeline, processors
from tests.ports import free_port
from tests.telemetry.scraping import taking
from tests.telemetry.test_prometheus import chain

Events = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Events:
    """The events that were written, in their order."""
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(path))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    monkeypatch.delenv("OPENLINEAGE_PARENT_ID", raising=False)
    return lambda: [json.loads(line) for line in path.read_text().splitlines()]


def run(pipeline: Any) -> None:
    with pyrite.instance() as pyr:
        pyr.new_light_job(pipeline).execute().exception(20)


def test_a_run_starts_and_completes_with_its_files(tmp_path: Path, events: Events) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for number in (1, 2):
        (source / f"{number}.csv").write_text("name,age\nann,41\nbob,7\n")
    pipe = Pipeline()
    rows = pipe.read_from(
        processors.read_files(f"{source}/*.csv", "csv", schema={"name": str, "age": int})
    )
    rows.filter(lambda row: row["age"] > 18).write_to(
        processors.write_files(tmp_path / "out", "parquet")
    )
    run(pipe)
    start, complete = events()
    assert [start["eventType"], complete["eventType"]] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["job"] == complete["job"] | {"facets": start["job"]["facets"]}
    assert start["eventTime"] <= complete["eventTime"]
    (read,), (written,) = complete["inputs"], complete["outputs"]
    assert (read["namespace"], read["name"]) == ("file", str(source))
    assert _counts(read["inputFacets"]["inputStatistics"]) == (4, 44, 2)
    assert _columns(read) == [("name", "str"), ("age", "int")]
    assert (written["namespace"], written["name"]) == ("file", str(tmp_path / "out"))
    (file,) = (tmp_path / "out").glob("*.parquet")
    assert _counts(written["outputFacets"]["outputStatistics"]) == (2, file.stat().st_size, 1)
    assert _columns(written) == [("name", "string"), ("age", "int64")]


def _counts(facet: dict[str, Any]) -> tuple[int, int, int]:
    return facet["rowCount"], facet["size"], facet["fileCount"]


def _columns(dataset: dict[str, Any]) -> list[tuple[str, str]]:
    return [(field["name"], field["type"]) for field in dataset["facets"]["schema"]["fields"]]


def test_batches_of_parquet_have_their_schema(tmp_path: Path, events: Events) -> None:
    pq.write_table(pa.table({"n": [1, 2, 3]}), tmp_path / "n.parquet")
    pipe = Pipeline()
    batches = pipe.read_from(processors.read_batches(tmp_path / "n.parquet"))
    batches.write_to(processors.write_batches(tmp_path / "out", single_file="n.parquet"))
    run(pipe)
    complete = events()[-1]
    (read,), (written,) = complete["inputs"], complete["outputs"]
    assert read["name"] == str(tmp_path / "n.parquet")
    assert written["name"] == str(tmp_path / "out" / "n.parquet")
    assert _columns(read) == _columns(written) == [("n", "int64")]
    assert read["inputFacets"]["inputStatistics"]["rowCount"] == 3
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 3


def test_tables_of_a_database_have_their_columns_and_no_secret(
    tmp_path: Path, events: Events
) -> None:
    import sqlite3

    url = f"sqlite:///{tmp_path}/shop.db"
    with sqlite3.connect(tmp_path / "shop.db") as shop:
        shop.execute("create table orders (id integer, total real)")
        shop.execute("insert into orders values (1, 2.5), (2, 3.5)")
    pipe = Pipeline()
    rows = pipe.read_from(processors.read_sql(url, "select id, total from orders"))
    rows.write_to(processors.write_sql(url, "copies", create={"id": int, "total": float}))
    run(pipe)
    complete = events()[-1]
    (read,), (written,) = complete["inputs"], complete["outputs"]
    assert (read["namespace"], read["name"]) == (f"sqlite://{tmp_path}/shop.db", "orders")
    assert written["name"] == "copies"
    assert _columns(read) == [("id", "INTEGER"), ("total", "REAL")]
    assert [name for name, _ in _columns(written)] == ["id", "total"]
    assert written["outputFacets"]["outputStatistics"]["rowCount"] == 2
    assert complete["job"]["facets"]["sql"]["query"] == "select id, total from orders"


def test_a_run_that_fails_says_why(events: Events) -> None:
    run(chain("bad", fails_at=3))
    start, fail = events()
    assert (start["eventType"], fail["eventType"]) == ("START", "FAIL")
    error = fail["run"]["facets"]["errorMessage"]
    assert "bad-work" in error["message"]
    assert error["programmingLanguage"] == "PYTHON"
    assert "test_prometheus.py" in error["stackTrace"]


def test_a_run_that_is_cancelled_is_aborted(events: Events) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(n: int) -> int:
        begun.set()
        assert go_on.wait(10)
        return n

    pipe = Pipeline()
    pipe.read_from([1, 2]).map(wait).write_to(processors.noop())
    with pyrite.instance() as pyr:
        execution = pyr.new_light_job(pipe).execute()
        assert begun.wait(10)
        execution.cancel()
        go_on.set()
        execution.exception(10)
    assert [event["eventType"] for event in events()] == ["START", "ABORT"]


def test_the_job_has_its_type_its_source_and_its_parent(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of_parent = "0190c9a0-0000-7000-8000-000000000000"
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"prod/nightly/{run_of_parent}")
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "shop")
    run(chain("facets"))
    event = events()[0]
    assert (event["job"]["namespace"], event["job"]["name"]) == ("shop", "facets-in … facets-out")
    assert event["job"]["facets"]["jobType"]["processingType"] == "BATCH"
    location = event["job"]["facets"]["sourceCodeLocation"]
    assert location["url"].endswith("test_prometheus.py")
    parent = event["run"]["facets"]["parent"]
    assert (parent["job"]["name"], parent["run"]["runId"]) == ("nightly", run_of_parent)


def test_the_url_of_the_environment_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    with taking() as server:
        monkeypatch.setenv("OPENLINEAGE_URL", server.url)
        before = dict(os.environ)
        run(chain("url"))
        assert os.environ == before
    assert [path for path, _ in server.taken] == ["/api/v1/lineage"] * 2
    assert json.loads(server.taken[-1][1])["eventType"] == "COMPLETE"


@pytest.mark.parametrize("kind", ["a dead endpoint", "a folder that cannot be written"])
def test_what_cannot_be_sent_is_one_warning_and_costs_no_time(
    kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if kind == "a dead endpoint":
        monkeypatch.setenv("OPENLINEAGE_URL", f"http://127.0.0.1:{free_port()}")
    else:
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
        monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", "/proc/none/events")
    started = time.perf_counter()
    with pyrite.instance() as pyr:
        for _ in range(3):
            pyr.new_light_job(chain("dead")).execute().result(10)
    assert time.perf_counter() - started < 1.5
    warned = [record for record in caplog.records if record.name.startswith("pyrite")]
    assert [record.levelno for record in warned] == [logging.WARNING]


def test_a_warning_does_not_show_the_password_of_a_url(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with taking(403) as server:
        monkeypatch.setenv("OPENLINEAGE_URL", server.url.replace("//", "//bob:hidden@"))
        run(chain("secret"))
    assert "403" in caplog.text
    assert "hidden" not in caplog.text


def test_a_process_that_ends_at_once_has_sent_its_events(events: Events) -> None:
    code = """
    import pyrite
    from pyrite import Pipeline, processors
    p = Pipeline()
    p.read_from([1, 2]).map(lambda n: n).write_to(processors.noop())
    pyrite.instance().new_light_job(p).execute().result(10)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=dict(os.environ), check=True)
    assert [event["eventType"] for event in events()] == ["START", "COMPLETE"]
