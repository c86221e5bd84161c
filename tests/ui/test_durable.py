"""Durable jobs on the page: a deployment, its jobs among the runs, and how one is cancelled."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from pyrite import DAG, between, processors
from pyrite.durable.client.watching import DeploymentView
from pyrite.durable.hosts.watching import NoAnswer, Watcher
from pyrite.errors import JobCancelled
from pyrite.instances import Instance
from pyrite.ui import streaming
from pyrite.ui.opening import serve, sources_of
from pyrite.ui.sources import deployments
from pyrite.watching.journal import runs_folder
from pyrite.watching.journal.known import key_of, known_places, remember
from tests.durable.threads import running
from tests.ui.http import Http
from tests.watching.jobs import failing

GATE = threading.Event()
REACHED = threading.Event()


def hold(item: int) -> int:
    REACHED.set()
    assert GATE.wait(20)
    return item


@pytest.fixture
def closed_gate() -> Iterator[None]:
    GATE.clear()
    REACHED.clear()
    yield
    GATE.set()


def _held() -> DAG:
    dag = DAG()
    source = dag.vertex("read", processors.read_items(range(5)))
    work = dag.vertex("work", processors.map(hold))
    return dag.edge(between(source, work).distributed())


def test_a_durable_job_is_seen_and_cancelled(tmp_path: Path, closed_gate: None) -> None:
    place = str(tmp_path / "jobs")
    sources = sources_of(tmp_path / "runs", durable=[place])
    with running(Path(place), peers=2) as threads, serve(sources) as server:
        http, key = Http(server.url), key_of("durable", place)
        execution = threads.execute(_held(), name="held", members=1)
        assert REACHED.wait(20)
        [row] = http.get("/api/runs").json["runs"]
        assert (row["id"], row["name"], row["kind"]) == (execution.id, "held", "durable")
        assert (row["state"], row["can_cancel"]) == ("running", True)
        run = http.get(f"/api/runs/{execution.id}").json
        assert [vertex["name"] for vertex in run["vertices"]] == ["read", "work"]
        view = http.get(f"/api/durable/{key}").json
        assert (view["key"], len(view["peers"])) == (key, 2)
        assert {"coordinators", "queues", "problem"} <= view.keys()
        assert {"t", "peer", "state", "part"} <= view["history"][0].keys()
        assert [job["id"] for job in view["jobs"]] == [execution.id]
        with http.events(f"/api/durable/{key}/events") as events:
            assert next(events)[0] == "durable"
        assert http.post(f"/api/runs/{execution.id}/cancel").status == 202
        GATE.set()
        with pytest.raises(JobCancelled):
            execution.result(20)
        assert http.get(f"/api/runs/{execution.id}").json["state"] == "cancelled"
        assert http.post(f"/api/runs/{execution.id}/cancel").status == 409


def test_a_deployment_that_cannot_be_reached_hides_no_other_run(tmp_path: Path) -> None:
    place = str(tmp_path / "gone")
    with serve(sources_of(tmp_path, durable=[place])) as server:
        assert Http(server.url).get("/api/runs").json == {"runs": [], "total": 0}
        answer = Http(server.url).get(f"/api/durable/{key_of('durable', place)}")
        assert (answer.status, "does not exist" in answer.json["error"]) == (503, True)
        assert Http(server.url).get("/api/durable/none").status == 404


def test_a_damaged_deployment_hides_no_other_run(
    shown: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object) -> None:
        raise KeyError("tasks")

    monkeypatch.setattr(Watcher, "deployment", damaged)
    monkeypatch.setattr(Watcher, "job", damaged)
    execution = shown.new_light_job(failing()).execute()
    execution.exception(10)
    remember(runs_folder(), "durable", str(tmp_path))
    assert shown.ui_url is not None
    http = Http(shown.ui_url)
    assert [row["id"] for row in http.get("/api/runs").json["runs"]] == [execution.id]
    assert http.get("/api/runs/0000").status == 404


def test_a_run_whose_store_does_not_answer_for_a_moment_is_not_taken_for_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> None:
        raise NoAnswer("no answer")

    monkeypatch.setattr(streaming, "EVENT_SECONDS", 0.02)
    monkeypatch.setattr(deployments, "PROBE_SECONDS", 0.0)
    place = tmp_path / "jobs"
    sources = sources_of(tmp_path, durable=[str(place)])
    with running(place, peers=0) as threads, serve(sources) as server:
        http, path = Http(server.url), f"/api/runs/{threads.execute(_held()).id}"
        with http.events(f"{path}/events") as events:
            assert next(events)[0] == "run"
            with monkeypatch.context() as meanwhile:
                meanwhile.setattr(Watcher, "job", silent)
                assert any(name == "problem" for name, _ in events)
                assert http.get(path).status == 503
            assert any(name == "run" for name, _ in events)


def test_a_run_that_a_silent_store_may_have_is_not_said_to_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> None:
        raise NoAnswer("no answer")

    monkeypatch.setattr(Watcher, "job", silent)
    with serve(sources_of(tmp_path, durable=[str(tmp_path)])) as server:
        answer = Http(server.url).get("/api/runs/0000")
    assert (answer.status, answer.json) == (503, {"error": "no answer"})


def test_nobody_waits_for_a_server_that_is_silent_until_it_answers_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def silent(*_: object) -> DeploymentView:
        asked.append(clock[0])
        raise NoAnswer("no answer")

    def probe(*_: object) -> Future[object]:
        probes.append(Future())
        probed.append(clock[0])
        return probes[-1]

    clock, asked, probed, probes = [100], list[int](), list[int](), list[Future[object]]()
    monkeypatch.setattr(Watcher, "deployment", silent)
    monkeypatch.setattr(Watcher, "look_for_answer", probe)
    monkeypatch.setattr(deployments, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    deployment = deployments.Deployment("key", "zk://nowhere")
    for clock[0] in range(100, 130):
        deployment.rows()
    assert (asked, probed) == ([100], [110])
    probes[0].set_exception(NoAnswer("it cannot be reached"))
    for clock[0] in range(130, 133):
        deployment.rows()
    assert (asked, probed) == ([100], [110, 130])
    probes[1].set_result(None)
    deployment.rows()
    assert asked == [100, 132]


def test_several_who_wait_for_a_silent_server_do_not_make_its_silence_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployments, "PATIENCE_SECONDS", 0.05)
    answers = threading.Event()
    with running(tmp_path, peers=0):
        deployment = deployments.Deployment("key", str(tmp_path))
        deployment._watcher._desk.post(lambda _: answers.wait(10))
        monkeypatch.setattr(deployments, "PROBE_SECONDS", 0.0)
        with ThreadPoolExecutor(4) as pages:
            assert list(pages.map(lambda _: deployment.rows(), range(4))) == [[]] * 4
        with pytest.raises(NoAnswer):
            deployment.document()
        answers.set()
        assert deployment._probe is not None
        deployment._probe.result(10)
        assert deployment.document()["key"] == "key"
        deployment.close()


def test_the_secret_of_a_url_is_not_shown(tmp_path: Path) -> None:
    url = "zk://127.0.0.1:1/prod?secret=tell-nobody&nats=nats://me:word@127.0.0.1:1"
    with serve(sources_of(tmp_path, durable=[url])) as server:
        about = Http(server.url).get("/api/about").body.decode()
    assert "zk://127.0.0.1:1/prod" in about
    assert "nobody" not in about
    assert "word" not in about


def test_places_that_were_used_are_found_again_until_they_are_gone(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    remember(tmp_path, "durable", str(jobs))
    remember(tmp_path, "workload", str(tmp_path / "gone"))
    (tmp_path / "known" / "broken.json").write_text("{")
    assert [known.place for known in known_places(tmp_path, "durable")] == [str(jobs)]
    assert known_places(tmp_path, "workload") == []
    with serve(sources_of(tmp_path)) as server:
        sources = Http(server.url).get("/api/about").json["sources"]
    assert [source["label"] for source in sources if source["kind"] == "durable"] == [str(jobs)]
