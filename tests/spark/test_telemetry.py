"""What platform teams see of a job on Spark."""

from __future__ import annotations

import pytest

from pyrite import Instance, JobConfig, telemetry
from tests.telemetry.scraping import taking
from tests.telemetry.test_prometheus import chain
from tests.telemetry.test_traces import spans_of


def test_a_trace_has_the_stages(pyr: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    with taking() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        with telemetry.traces():
            pyr.new_job(chain("spark"), JobConfig(name="on spark")).execute().result(60)
    spans = spans_of(collector)
    job = next(span for span in spans if span.name == "job on spark")
    stages = [span for span in spans if span.parent_span_id == job.span_id]
    assert stages
    assert all(
        job.start_time_unix_nano <= stage.start_time_unix_nano <= stage.end_time_unix_nano
        for stage in stages
    )
