"""Metrics for Prometheus: real scrapes, and pushes to a gateway."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import pyrite
from pyrite import DAG, Instance, PyriteError, between, processors, skip
from pyrite.telemetry import prometheus, push_to
from pyrite.telemetry.metrics.endpoint import endpoint_from
from tests.ports import free_port
from tests.telemetry.scraping import samples_of, scrape, taking


def chain(name: str, *, fails_at: int = -1, skips: int = -1) -> DAG:
    def work(n: int) -> int:
        if n == skips:
            raise ValueError(n)
        return 1 // (n - fails_at) * n

    dag = DAG()
    numbers = dag.vertex(f"{name}-in", processors.read_items(range(100)))
    mapped = dag.vertex(
        f"{name}-work", processors.map(work), on_error=skip() if skips >= 0 else "fail"
    )
    out = dag.vertex(f"{name}-out", processors.noop())
    return dag.edge(between(numbers, mapped)).edge(between(mapped, out))


def test_a_scrape_has_the_metrics_of_a_run(pyr: Instance) -> None:
    before = time.time()
    with prometheus(port=0) as endpoint:
        pyr.new_light_job(chain("s", skips=7)).execute().result(10)
        found = scrape(endpoint.url)
    job = "s-in … s-out"
    assert found["pyrite_vertex_received_total", job, "s-work"] == 100
    assert found["pyrite_vertex_emitted_total", job, "s-work"] == 99
    assert found["pyrite_vertex_errors_total", job, "s-work"] == 1
    assert found["pyrite_vertex_busy_seconds_total", job, "s-work"] > 0
    assert found["pyrite_vertex_queue_items", job, "s-work"] == 0
    assert found["pyrite_job_runs_total", job, "completed"] == 1
    assert before <= found["pyrite_job_last_success_timestamp_seconds", job] <= time.time()
    assert 0 < found["pyrite_job_duration_seconds", job] < 10


def test_counters_go_on_in_the_next_run_of_the_job(pyr: Instance) -> None:
    with prometheus(port=0) as endpoint:
        for runs in (1, 2, 3):
            pyr.new_light_job(chain("again")).execute().result(10)
            found = scrape(endpoint.url)
            assert found["pyrite_vertex_received_total", "again-in … again-out", "again-out"] == (
                100 * runs
            )


def test_a_run_is_seen_while_it_is_running(pyr: Instance) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(n: int) -> int:
        begun.set()
        assert go_on.wait(10)
        return n

    dag = DAG()
    numbers = dag.vertex("live-in", processors.read_items([1]))
    dag.edge(between(numbers, dag.vertex("live-out", processors.map(wait))))
    with prometheus(port=0) as endpoint:
        execution = pyr.new_light_job(dag).execute()
        assert begun.wait(10)
        assert scrape(endpoint.url)["pyrite_job_running", "live-in … live-out"] == 1
        go_on.set()
        execution.result(10)
        assert scrape(endpoint.url)["pyrite_job_running", "live-in … live-out"] == 0


def test_a_run_that_fails_is_an_error_of_its_vertex_and_no_success(pyr: Instance) -> None:
    with prometheus(port=0) as endpoint:
        pyr.new_light_job(chain("fails", fails_at=3)).execute().exception(10)
        found = scrape(endpoint.url)
    job = "fails-in … fails-out"
    assert found["pyrite_vertex_errors_total", job, "fails-work"] == 1
    assert found["pyrite_job_runs_total", job, "failed"] == 1
    assert ("pyrite_job_last_success_timestamp_seconds", job) not in found
    assert ("pyrite_job_duration_seconds", job) in found


def test_no_label_has_an_execution(pyr: Instance) -> None:
    with prometheus(port=0) as endpoint:
        execution = pyr.new_light_job(chain("ids")).execute()
        execution.result(10)
        words = {word for key in scrape(endpoint.url) for word in key}
    assert not {execution.id, execution.job.id} & words


def test_the_variable_opens_an_endpoint_while_instances_are_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = free_port()
    monkeypatch.setenv("PYRITE_PROMETHEUS", str(port))
    url = f"http://127.0.0.1:{port}/metrics"
    with pyrite.instance() as one:
        with pyrite.instance():
            pass
        one.new_light_job(chain("env")).execute().result(10)
        assert ("pyrite_job_duration_seconds", "env-in … env-out") in scrape(url)
    with pytest.raises(OSError, match="refused"):
        scrape(url)


def test_a_port_that_is_taken_is_a_sentence(caplog: pytest.LogCaptureFixture) -> None:
    with prometheus(port=0) as first:
        with pytest.raises(PyriteError, match=rf"cannot serve metrics at 127.0.0.1:{first.port}"):
            prometheus(port=first.port)
        with endpoint_from(f"127.0.0.1:{first.port}") as second:
            assert first.port < second.port < first.port + 20
    assert f"port {first.port} is taken" in caplog.text


@pytest.mark.parametrize("value", ["here", "256.1.1.1:80", "1:2:x"])
def test_a_variable_that_makes_no_sense_is_one_warning(
    value: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PYRITE_PROMETHEUS", value)
    for _ in range(2):
        with pyrite.instance() as instance:
            instance.new_light_job(chain("bad")).execute().result(10)
    assert [r.levelno for r in caplog.records] == [logging.WARNING]
    assert "PYRITE_PROMETHEUS" in caplog.text


def test_a_forked_child_leaves_the_port_to_its_parent() -> None:
    with prometheus(port=0) as endpoint:
        child = os.fork()
        if not child:
            listens = _has_socket_at(endpoint.port)
            endpoint.close()
            os._exit(int(listens))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert scrape(endpoint.url) is not None


def _has_socket_at(port: int) -> bool:
    for file in map(int, os.listdir("/proc/self/fd")):
        try:
            with socket.socket(fileno=os.dup(file)) as found:
                if found.getsockname()[1:2] == (port,):
                    return True
        except OSError:
            continue
    return False


def test_the_end_of_a_run_is_pushed_to_a_group_of_its_job(pyr: Instance) -> None:
    with taking() as gateway, push_to(gateway.url) as pushing:
        pyr.new_light_job(chain("push")).execute().result(10)
        assert pushing.flush()
        sent = dict(gateway.taken)
    body = next(body for path, body in sent.items() if path == _group("push-in … push-out"))
    samples = samples_of(body.decode())
    assert samples["pyrite_vertex_received_total", "push-in … push-out", "push-out"] == 100
    assert {key[1] for key in samples} == {"push-in … push-out"}


def test_a_run_is_pushed_as_soon_as_it_has_ended(pyr: Instance) -> None:
    with taking() as gateway, push_to(gateway.url, job="nightly"):
        pyr.new_light_job(chain("soon")).execute().result(10)
        gateway.wait_for(1)
    path, body = next((p, b) for p, b in gateway.taken if b"soon-in" in b)
    assert path.startswith("/metrics/job/nightly/pyrite_job@base64/")
    assert samples_of(body.decode())["pyrite_job_runs_total", "soon-in … soon-out", "completed"]


def test_what_has_not_changed_is_not_pushed_again(pyr: Instance) -> None:
    with taking() as gateway, push_to(gateway.url) as pushing:
        for name in ("one", "two", "two"):
            pyr.new_light_job(chain(name)).execute().result(10)
            assert pushing.flush()
        paths = [path for path, _ in gateway.taken]
    assert paths.count(_group("one-in … one-out")) == 1
    assert paths.count(_group("two-in … two-out")) == 2


def _group(job: str) -> str:
    import base64

    return f"/metrics/job@base64/{base64.urlsafe_b64encode(job.encode()).decode()}"


def test_a_process_that_ends_at_once_has_pushed(monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
    import pyrite
    from pyrite import Pipeline, processors
    p = Pipeline()
    p.read_from([1, 2]).map(lambda n: n).write_to(processors.noop())
    pyrite.instance().new_light_job(p).execute().result(10)
    """
    with taking() as gateway:
        monkeypatch.setenv("PYRITE_PUSHGATEWAY", gateway.url)
        subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)
    assert any(b"pyrite_job_last_success_timestamp_seconds{" in body for _, body in gateway.taken)


def test_a_dead_gateway_is_one_warning_and_costs_no_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PYRITE_PUSHGATEWAY", f"http://user:geheim@127.0.0.1:{free_port()}")
    started = time.perf_counter()
    with pyrite.instance() as instance:
        for _ in range(3):
            instance.new_light_job(chain("dead")).execute().result(10)
    assert time.perf_counter() - started < 1.0
    assert [r.levelno for r in caplog.records] == [logging.WARNING]
    assert "geheim" not in caplog.text
