"""Workloads on the page: the list, one run with its graph and logs, and how it is cancelled."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from pyrite.ui import streaming
from pyrite.ui.opening import serve, sources_of
from pyrite.watching.journal.known import key_of, remember
from pyrite.workload import Run, Workload
from tests.ui.http import Http

GATE = threading.Event()


def load() -> int:
    print("loading")
    return 7


def hold(load: int) -> int:
    GATE.wait(20)
    return load


def fail(load: int) -> None:
    raise ValueError("no such day")


def _workload() -> Workload:
    workload = Workload().add("load", load)
    workload.add("a/b hold", hold, inputs={"load": "load"})
    workload.add("fail", fail, inputs={"load": "load"})
    return workload.add("after", load, after=["fail"])


@contextmanager
def _running(store: Path) -> Iterator[Run]:
    with ThreadPoolExecutor(2) as threads:
        yield _workload().run(store=store, kind="transient", executor=threads, workers=2)


@pytest.fixture(autouse=True)
def events_come_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "EVENT_SECONDS", 0.05)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    GATE.clear()
    yield GATE
    GATE.set()


def test_a_workload_is_seen_while_it_runs_and_after(tmp_path: Path, gate: threading.Event) -> None:
    store = tmp_path / "sales"
    key = key_of("workload", str(store))
    with (
        serve(sources_of(tmp_path, workloads=[store])) as server,
        _running(store) as run,
        Http(server.url).events(f"/api/workloads/{key}/events") as events,
    ):
        http = Http(server.url)
        name, document = next(events)
        while "FAILED" not in document["counts"]:
            name, document = next(events)
        assert (name, document["phase"], document["can_cancel"]) == ("workload", "running", True)
        assert ["load", "fail"] in document["edges"]
        rows = {row["job"]: row for row in document["jobs"]}
        assert rows["load"]["why"] == "it had no earlier result"
        assert rows["after"]["why"] == "its upstream job fail did not succeed"
        log = http.get(f"/api/workloads/{key}/jobs/fail/log").json
        assert "no such day" in log["traceback"]
        assert http.get(f"/api/workloads/{key}/jobs/a%2Fb%20hold/log").status == 200
        graph = http.get(f"/api/workloads/{key}/graph.svg").body.decode()
        assert 'data-vertex="a/b hold"' in graph
        gate.set()
        run.wait(20)
        [row] = http.get("/api/workloads").json["workloads"]
        assert (row["key"], row["label"], row["phase"]) == (key, "sales", "ended")
        assert row["counts"] == {"DONE": 2, "FAILED": 1, "BLOCKED": 1}
        assert http.post(f"/api/workloads/{key}/cancel").status == 409


def test_a_workload_is_cancelled(tmp_path: Path, gate: threading.Event) -> None:
    store = tmp_path / "sales"
    remember(tmp_path, "workload", str(store))
    with _running(store) as run, serve(sources_of(tmp_path)) as server:
        http = Http(server.url)
        [row] = http.get("/api/workloads").json["workloads"]
        assert http.post(f"/api/workloads/{row['key']}/cancel").status == 202
        with http.events(f"/api/workloads/{row['key']}/events") as events:
            while "CANCELLED" not in next(events)[1]["counts"]:
                pass
        gate.set()
        run.wait(20)
        [row] = http.get("/api/workloads").json["workloads"]
    assert row["phase"] == "cancelled"


def test_the_next_run_in_a_store_is_the_one_that_is_shown(
    tmp_path: Path, gate: threading.Event
) -> None:
    store = tmp_path / "sales"
    gate.set()
    with serve(sources_of(tmp_path, workloads=[store])) as server:
        path = f"/api/workloads/{key_of('workload', str(store))}"
        for states in ({"DONE": 2}, {"SKIPPED": 2}):
            with _running(store) as run:
                run.wait(20)
            document = Http(server.url).get(path).json
            assert document["counts"] == {**states, "FAILED": 1, "BLOCKED": 1}


def test_the_run_in_a_store_that_was_removed_and_made_again_is_the_one_that_is_shown(
    tmp_path: Path, gate: threading.Event
) -> None:
    gate.set()
    store = tmp_path / "sales"
    with serve(sources_of(tmp_path, workloads=[store])) as server:
        for job in ("old", "new"):
            shutil.rmtree(store, ignore_errors=True)
            with ThreadPoolExecutor(1) as threads:
                workload = Workload().add(job, load)
                workload.run(store=store, kind="transient", executor=threads).wait(20)
            document = Http(server.url).get(f"/api/workloads/{key_of('workload', str(store))}").json
            assert [row["job"] for row in document["jobs"]] == [job]


def test_what_is_not_there_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    store = tmp_path / "empty"
    store.mkdir()
    with serve(sources_of(tmp_path, workloads=[store])) as server:
        http = Http(server.url)
        [row] = http.get("/api/workloads").json["workloads"]
        assert (row["phase"], "is not the store" in row["problem"]) == ("unreadable", True)
        assert http.get(f"/api/workloads/{row['key']}").status == 503
        for path in ("none", "..%2F", "none/graph.svg", "none/jobs/a/log", "none/events"):
            answer = http.get(f"/api/workloads/{path}")
            assert (answer.status, bool(answer.json["error"])) == (404, True)
