"""Traces for OpenTelemetry, sent to a real OTLP/HTTP receiver that parses the protobuf."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import TracerProvider

import pyrite
from tests.ports import free_port
from tests.telemetry.scraping import Taking, taking
from tests.telemetry.test_prometheus import chain


def spans_of(collector: Taking) -> list[Span]:
    requests = [ExportTraceServiceRequest.FromString(body) for _, body in collector.taken]
    return [
        span
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Taking]:
    monkeypatch.delenv("TRACEPARENT", raising=False)
    with taking() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        yield found


def test_a_job_is_a_span_with_its_stages_under_it(collector: Taking) -> None:
    before = time.time_ns()
    with pyrite.instance() as pyr:
        pyr.new_light_job(chain("t")).execute().result(10)
    assert {path for path, _ in collector.taken} == {"/v1/traces"}
    spans = {span.name: span for span in spans_of(collector)}
    job = spans.pop("job t-in … t-out")
    assert not job.parent_span_id
    assert before <= job.start_time_unix_nano < job.end_time_unix_nano <= time.time_ns()
    assert spans
    for stage in spans.values():
        assert stage.name.startswith("stage ")
        assert (stage.trace_id, stage.parent_span_id) == (job.trace_id, job.span_id)
    vertices = [
        value.string_value
        for stage in spans.values()
        for attribute in stage.attributes
        if attribute.key == "pyrite.stage.vertices"
        for value in attribute.value.array_value.values
    ]
    assert vertices == ["t-in", "t-work", "t-out"]


def test_a_job_that_fails_is_an_error_with_the_traceback(collector: Taking) -> None:
    with pyrite.instance() as pyr:
        pyr.new_light_job(chain("bad", fails_at=3)).execute().exception(10)
    job = next(span for span in spans_of(collector) if span.name.startswith("job"))
    assert job.status.code == Status.STATUS_CODE_ERROR
    event = {each.key: each.value.string_value for each in job.events[0].attributes}
    assert "bad-work" in event["exception.message"]
    assert "test_prometheus.py" in event["exception.stacktrace"]


def test_the_parent_is_that_of_the_environment(
    collector: Taking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", f"00-{'ab' * 16}-{'cd' * 8}-01")
    with pyrite.instance() as pyr:
        pyr.new_light_job(chain("child")).execute().result(10)
    job = next(span for span in spans_of(collector) if span.name.startswith("job"))
    assert (job.trace_id.hex(), job.parent_span_id.hex()) == ("ab" * 16, "cd" * 8)


def test_a_span_that_is_current_is_the_parent(collector: Taking) -> None:
    tracer = TracerProvider(shutdown_on_exit=False).get_tracer("user")
    with pyrite.instance() as pyr, tracer.start_as_current_span("mine") as mine:
        pyr.new_light_job(chain("inner")).execute().result(10)
    job = next(span for span in spans_of(collector) if span.name.startswith("job"))
    assert int.from_bytes(job.parent_span_id) == mine.get_span_context().span_id


def test_a_parent_that_is_not_sampled_has_no_children(
    collector: Taking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", f"00-{'ab' * 16}-{'cd' * 8}-00")
    with pyrite.instance() as pyr:
        pyr.new_light_job(chain("quiet")).execute().result(10)
    assert not collector.taken


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")]
)
def test_traces_can_be_turned_off(
    name: str, value: str, collector: Taking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pyrite.instance() as pyr:
        pyr.new_light_job(chain("off")).execute().result(10)
    assert not collector.taken


def test_the_name_of_the_service_is_that_of_the_environment(
    collector: Taking, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("", "nightly"):
        monkeypatch.setenv("OTEL_SERVICE_NAME", name)
        with pyrite.instance() as pyr:
            pyr.new_light_job(chain("service")).execute().result(10)
    named = [
        attribute.value.string_value
        for _, body in collector.taken
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for attribute in resource.resource.attributes
        if attribute.key == "service.name"
    ]
    assert named == ["pyrite", "nightly"]


def test_a_provider_of_the_program_gets_the_spans(
    collector: Taking, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    with pyrite.instance() as pyr:
        pyr.new_light_job(chain("theirs")).execute().result(10)
    assert "job theirs-in … theirs-out" in {span.name for span in kept.get_finished_spans()}
    assert not collector.taken


def test_a_dead_collector_is_one_warning_and_costs_no_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    started = time.perf_counter()
    with pyrite.instance() as pyr:
        for _ in range(3):
            pyr.new_light_job(chain("dead")).execute().result(10)
    assert time.perf_counter() - started < 1.0
    assert [r.levelno for r in caplog.records] == [logging.WARNING]


def test_a_collector_that_refuses_is_one_warning_that_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with taking(404) as collector, pyrite.instance() as pyr:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        with pyrite.telemetry.traces():
            pyr.new_light_job(chain("refused")).execute().result(10)
    (record,) = caplog.records
    assert record.name == "pyrite.telemetry"
    assert "404" in record.getMessage()


def test_a_process_that_ends_at_once_has_sent_its_spans(collector: Taking) -> None:
    code = """
    import pyrite
    from pyrite import Pipeline, processors
    p = Pipeline()
    p.read_from([1, 2]).map(lambda n: n).write_to(processors.noop())
    pyrite.instance().new_light_job(p).execute().result(10)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=dict(os.environ))
    assert done.returncode == 0
    assert any(span.name.startswith("job") for span in spans_of(collector))
