"""The page's server and the runs that it shows, over a real connection."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyrite
from pyrite.errors import PyriteError
from pyrite.instances import Instance
from pyrite.ui import streaming
from pyrite.ui.opening import serve, sources_of
from pyrite.watching import recording
from pyrite.watching.journal.writing import JournalWriter
from pyrite.watching.views import EdgeView, RunView, VertexView
from tests.ui.http import Http
from tests.watching.jobs import Gate, failing


@pytest.fixture(autouse=True)
def events_come_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "EVENT_SECONDS", 0.05)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Http]:
    """A page without runs."""
    with serve(sources_of(tmp_path_factory.mktemp("runs"))) as server:
        yield Http(server.url)


def _http(instance: Instance) -> Http:
    assert instance.ui_url is not None
    return Http(instance.ui_url)


def test_a_run_that_runs_is_listed_and_its_document_has_all(shown: Instance) -> None:
    http, gate = _http(shown), Gate()
    execution = shown.new_light_job(gate.dag()).execute()
    document = http.get("/api/runs").json
    assert document["total"] == 1
    [row] = document["runs"]
    assert (row["id"], row["state"], row["can_cancel"]) == (execution.id, "running", True)
    run = http.get(f"/api/runs/{execution.id}").json
    assert [vertex["name"] for vertex in run["vertices"]] == ["source", "sink"]
    assert {"seconds", "items_in", "items_out", "can_cancel", "history"} <= run.keys()
    assert run["history"].keys() == {"source", "sink"}


def test_a_failed_run_says_where_and_at_which_item(shown: Instance) -> None:
    execution = shown.new_light_job(failing("no such day")).execute()
    execution.exception(10)
    run = _http(shown).get(f"/api/runs/{execution.id}").json
    assert (run["state"], run["failure"]["vertex"]) == ("failed", "step")
    assert "no such day" in run["failure"]["traceback"]
    [row] = _http(shown).get("/api/runs?state=failed&search=STEP+such+day").json["runs"]
    assert "no such day" in row["failure"]


def test_a_failure_with_a_text_of_megabytes_is_cut(shown: Instance) -> None:
    execution = shown.new_light_job(failing("x" * 3_000_000 + "\nthe end")).execute()
    execution.exception(10)
    assert len(_http(shown).get("/api/runs").body) < 5000
    answer = _http(shown).get(f"/api/runs/{execution.id}")
    assert len(answer.body) < 100_000
    assert answer.json["failure"]["traceback"].endswith("the end\n")


def test_text_that_is_no_unicode_is_shown(shown: Instance) -> None:
    """As the name of a file may be."""
    execution = shown.new_light_job(failing("\ud800", name="step \udcff")).execute()
    execution.exception(10)
    path = f"/api/runs/{execution.id}"
    run = _http(shown).get(path).json
    assert run["vertices"][1]["name"] == "step \udcff"
    assert "\ud800" in run["failure"]["message"]
    assert _http(shown).get(f"{path}/graph.svg").status == 200


def test_a_run_is_cancelled_once(shown: Instance) -> None:
    http = _http(shown)
    execution = shown.new_light_job(Gate().dag()).execute()
    assert http.post(f"/api/runs/{execution.id}/cancel").status == 202
    execution.exception(10)
    assert execution.cancelled()
    again = http.post(f"/api/runs/{execution.id}/cancel")
    assert (again.status, "cancelled" in again.json["error"]) == (409, True)


def test_the_events_of_a_run_end_with_the_run(shown: Instance) -> None:
    gate = Gate()
    execution = shown.new_light_job(gate.dag()).execute()
    with _http(shown).events(f"/api/runs/{execution.id}/events") as events:
        assert next(events)[1]["state"] == "running"
        gate.open()
        last = list(events)
    assert [name for name, _ in last[-2:]] == ["run", "end"]
    assert last[-2][1]["state"] == "completed"


def test_the_events_of_a_run_have_each_point_of_its_history_once(
    shown: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "LOOK_SECONDS", 0.11)
    gate = Gate()
    execution = shown.new_light_job(gate.dag()).execute()
    path = f"/api/runs/{execution.id}"
    with _http(shown).events(f"{path}/events") as events:
        first = next(events)[1]
        assert "history_after" not in first
        times = list(first["history"]["source"]["t"])
        while len(times) < 4:
            document = next(events)[1]
            assert document["history_after"] == times[-1]
            times += document["history"].get("source", {"t": []})["t"]
        whole = _http(shown).get(path).json["history"]["source"]["t"]
        gate.open()
    assert times == sorted(set(times))
    assert set(times) <= set(whole)


def test_the_events_of_the_list_come_when_it_has_changed(shown: Instance) -> None:
    with _http(shown).events("/api/events") as events:
        assert next(events) == ("runs", {"runs": [], "total": 0})
        execution = shown.new_light_job(failing()).execute()
        assert [row["id"] for row in next(events)[1]["runs"]] == [execution.id]


def test_the_server_stops_soon_though_streams_are_open(tmp_path: Path) -> None:
    gate = Gate()
    with pyrite.instance(ui=True) as instance:
        execution = instance.new_light_job(gate.dag()).execute()
        http = _http(instance)
        with (
            http.events("/api/events") as of_list,
            http.events(f"/api/runs/{execution.id}/events") as of_run,
        ):
            assert next(of_run)[0] == next(of_list)[0][:3]
            began = time.monotonic()
            instance.close()
            took = time.monotonic() - began
            assert list(of_run)[-2][1]["state"] == "cancelled"
    assert took < 2


def test_a_client_that_does_not_read_does_not_keep_the_server(shown: Instance) -> None:
    http = _http(shown)
    shown.new_light_job(Gate().dag()).execute()
    with socket.create_connection((http.host, http.port)) as silent:
        silent.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        half = socket.create_connection((http.host, http.port))
        half.sendall(b"GET / HTTP/1.1\r\nHost:")
        assert silent.recv(10)
        began = time.monotonic()
        shown.close()
        half.close()
    assert time.monotonic() - began < 2


def test_a_forked_child_does_not_keep_the_port(tmp_path: Path) -> None:
    """In a process of its own: the fork of one with the threads of all tests would warn."""
    script = """
import os, signal, socket, pyrite
pyr = pyrite.instance(ui=True)
port = int(pyr.ui_url.rpartition(":")[2].strip("/"))
child = os.fork()
if not child:
    assert pyr.ui_url
    pyr.close()
    signal.pause()
pyr.close()
try:
    socket.create_connection(("127.0.0.1", port)).close()
    raise SystemExit("the port is still open")
except ConnectionRefusedError:
    pass
finally:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_graph_is_a_picture_with_all_vertices(shown: Instance) -> None:
    execution = shown.new_light_job(failing()).execute()
    execution.exception(10)
    picture = _http(shown).get(f"/api/runs/{execution.id}/graph.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert b"<svg" in picture.body
    assert b"source" in picture.body
    assert b"step" in picture.body


def test_the_log_is_read_from_where_the_last_answer_ended(shown: Instance) -> None:
    http, gate = _http(shown), Gate()
    execution = shown.new_light_job(gate.dag()).execute()
    logging.getLogger("pyrite.test").warning("one")
    first = http.get(f"/api/runs/{execution.id}/log").json
    logging.getLogger("pyrite.test").warning("two")
    second = http.get(f"/api/runs/{execution.id}/log?after={first['next']}").json
    assert [line["message"] for line in first["lines"]] == ["one"]
    assert [line["message"] for line in second["lines"]] == ["two"]
    gate.open()


@pytest.mark.parametrize("id", ["00000000", "..%2F..%2Fetc", "%2e%2e", "known", "a" * 500, "%00"])
def test_a_run_that_is_not_there_is_an_error_with_a_sentence(empty: Http, id: str) -> None:
    for path in ("", "/events", "/log", "/graph.svg"):
        answer = empty.get(f"/api/runs/{id}{path}")
        assert answer.status == 404
        assert answer.json["error"]
    assert empty.post(f"/api/runs/{id}/cancel").status == 404


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/static/..%5capp"],
)
def test_no_other_file_is_served(empty: Http, path: str) -> None:
    answer = empty.get(path)
    assert answer.status == 404
    assert b"starlette" not in answer.body


def test_each_address_of_the_page_is_the_page(empty: Http) -> None:
    for path in ("/", "/runs/abcd", "/workloads/x", "/durable/y"):
        answer = empty.get(path)
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/html")
    about = empty.get("/api/about").json
    assert about["version"] == pyrite.__version__
    assert about["read_only"] is False
    assert empty.get("/api/nothing").status == 404
    assert empty.get("/api/runs?limit=many").status == 400


def test_a_page_started_later_shows_what_was_recorded(tmp_path: Path) -> None:
    for n in range(3):
        JournalWriter(tmp_path).write(
            RunView(
                id=f"000{n}",
                job_id="1",
                name=f"job {n}",
                kind="normal",
                state="completed",
                submitted=float(n),
                ended=n + 2.0,
                vertices=(VertexView(name="a", emitted=5), VertexView(name="b", received=5)),
                edges=(EdgeView(source="a", destination="b"),),
            )
        )
    with serve(sources_of(tmp_path)) as server:
        document = Http(server.url).get("/api/runs?limit=2").json
    assert (document["total"], [run["id"] for run in document["runs"]]) == (3, ["0002", "0001"])
    assert (
        document["runs"][0] | {"items_in": 5, "items_out": 5, "seconds": 2.0} == document["runs"][0]
    )


def test_a_run_that_may_not_be_cancelled_from_here_is_an_error(tmp_path: Path) -> None:
    view = RunView(id="abcd", job_id="1", name="n", kind="light", state="running", submitted=1.0)
    JournalWriter(tmp_path).write(view)
    (tmp_path / "abcd" / "cancel").symlink_to("/")
    with serve(sources_of(tmp_path)) as server:
        answer = Http(server.url).post("/api/runs/abcd/cancel")
    assert (answer.status, "cannot be cancelled" in answer.json["error"]) == (409, True)


def test_a_read_only_page_cancels_nothing(tmp_path: Path) -> None:
    with serve(sources_of(tmp_path), is_read_only=True) as server:
        http = Http(server.url)
        assert http.get("/api/about").json["read_only"] is True
        assert http.post("/api/runs/abcd/cancel").status == 403


@pytest.mark.parametrize("ui", ["8080", "localhost:http", "localhost:99999", 8080, None])
def test_a_wrong_address_is_an_error(ui: str) -> None:
    with pytest.raises(PyriteError, match="HOST:PORT"):
        pyrite.instance(ui=ui)


def test_a_port_in_use_is_an_error_that_says_so(tmp_path: Path) -> None:
    with (
        serve(sources_of(tmp_path)) as server,
        pytest.raises(PyriteError, match=f"127.0.0.1:{server.port}.*in use"),
    ):
        serve(sources_of(tmp_path), port=server.port)


def test_a_closed_instance_leaves_its_port(shown: Instance) -> None:
    http = _http(shown)
    assert http.get("/").status == 200
    shown.close()
    with pytest.raises(ConnectionRefusedError):
        http.get("/")
