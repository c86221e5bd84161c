"""What platform teams see of a job on Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyrite import Instance, JobConfig, Pipeline, processors, telemetry
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


def test_lineage_names_the_tables_and_files_that_a_data_frame_reads(
    pyr: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = pyr.spark()
    spark.range(3).write.parquet(str(tmp_path / "numbers"))
    spark.range(2).write.option("path", str(tmp_path / "t")).saveAsTable("seen_numbers")
    pipe = Pipeline()
    pipe.read_from(
        processors.read_spark(
            spark.table("seen_numbers").union(spark.read.parquet(str(tmp_path / "numbers")))
        )
    ).write_to(processors.write_files(tmp_path / "out", "jsonl"))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(tmp_path / "events"))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    try:
        with telemetry.lineage() as lineage:
            pyr.new_job(pipe, JobConfig(name="from tables")).execute().result(60)
            assert lineage.flush()
    finally:
        spark.sql("drop table seen_numbers")
    complete = [json.loads(line) for line in (tmp_path / "events").read_text().splitlines()][-1]
    assert (complete["job"]["name"], complete["eventType"]) == ("from tables", "COMPLETE")
    assert {(each["namespace"], each["name"].split(".")[-1]) for each in complete["inputs"]} == {
        ("spark", "seen_numbers"),
        ("file", str(tmp_path / "numbers")),
    }
    assert complete["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 5
