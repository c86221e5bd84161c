"""Logs as JSON lines, with the job, the execution and the vertex."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyrite import DAG, AbstractProcessor, Instance, Pipeline, between, processors
from pyrite.telemetry import json_logs
from pyrite.telemetry.logs import JsonLines
from pyrite.watching.observing import name_of

log = logging.getLogger("shop")


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def noted(n: int) -> int:
    log.warning("saw %d", n)
    return n


def test_a_line_of_a_users_function_has_its_job_and_vertex(pyr: Instance) -> None:
    pipe = Pipeline()
    pipe.read_from([1]).map(noted, name="first").filter(noted, name="second").write_to(
        processors.noop()
    )
    stream = io.StringIO()
    with json_logs(stream=stream):
        execution = pyr.new_light_job(pipe).execute()
        execution.result(10)
    lines = lines_of(stream.getvalue())
    assert [line["vertex"] for line in lines] == ["first", "second"]
    assert {line["execution"] for line in lines} == {execution.id}
    assert {line["job"] for line in lines} == {name_of(execution.job)}
    assert [line["message"] for line in lines] == ["saw 1", "saw 1"]
    assert set(lines[0]) >= {"time", "level", "logger", "message", "job", "execution", "vertex"}


async def noted_later(n: int) -> int:
    await asyncio.sleep(0)
    return noted(n)


class Noting(AbstractProcessor):
    def try_process_any(self, ordinal: int, item: Any) -> bool:
        log.warning("own")
        return True


def noted_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    log.warning("batch")
    return batch


@pytest.mark.parametrize(
    ("items", "step"),
    [
        ([1], Noting),
        ([pa.record_batch({"n": [1]})], processors.map_batches(noted_batch)),
        ([1], processors.flat_map(lambda n: [noted(n)])),
        ([1], processors.map_async(noted_later)),
        ([1], processors.accumulate(0, lambda state, n: state + noted(n))),
    ],
)
def test_a_line_of_any_kind_of_step_has_its_vertex(
    items: list[Any], step: Any, pyr: Instance
) -> None:
    dag = DAG()
    source = dag.vertex("source", processors.read_items(items))
    dag.edge(between(source, dag.vertex("step", step)))
    stream = io.StringIO()
    with json_logs(stream=stream):
        pyr.new_light_job(dag).execute().result(10)
    lines = lines_of(stream.getvalue())
    assert {(line["vertex"], line["job"]) for line in lines} == {("step", "source … step")}


class Answering(Noting):
    asked = 0

    def failed_at(self, inbox: Any) -> Any:
        type(self).asked += 1
        log.warning("asked")
        return super().failed_at(inbox)


def test_a_processor_that_logs_where_it_is_does_not_ask_itself_again(pyr: Instance) -> None:
    dag = DAG()
    source = dag.vertex("source", processors.read_items([1]))
    dag.edge(between(source, dag.vertex("step", Answering)))
    stream = io.StringIO()
    with json_logs(stream=stream):
        pyr.new_light_job(dag).execute().result(10)
    assert [line["vertex"] for line in lines_of(stream.getvalue())] == [None, "step"]
    assert Answering.asked == 1


def test_a_line_that_is_about_no_job_says_so() -> None:
    stream = io.StringIO()
    with json_logs(stream=stream, level="INFO"):
        log.info("hello", extra={"order": 7, "job": "mine"})
        try:
            raise ValueError("bad")
        except ValueError:
            log.exception("with\nan error")
    hello, error = lines_of(stream.getvalue())
    assert (hello["job"], hello["vertex"], hello["order"]) == ("mine", None, 7)
    assert "ValueError: bad" in error["exception"]
    assert error["message"] == "with\nan error"


def test_what_cannot_be_json_is_a_line_all_the_same() -> None:
    loop: list[Any] = []
    loop.append(loop)
    odd = {"msg": "%d %d", "args": (1,), "object": object(), "loop": loop}
    (line,) = lines_of(JsonLines().format(logging.makeLogRecord(odd)))
    assert line["message"] == "%d %d (1,)"


def test_extra_values_do_not_spoil_a_line() -> None:
    stream = io.StringIO()
    with json_logs(stream=stream):
        log.warning("hello", extra={"share": float("nan"), "level": 3, "thread_count": 2})
    line = json.loads(stream.getvalue(), parse_constant=pytest.fail)
    assert (line["level"], line["extra_level"], line["share"]) == ("WARNING", 3, "nan")
    assert isinstance(line["process"], int)


def test_the_program_logs_as_before_when_it_is_closed(capsys: pytest.CaptureFixture[str]) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("plain %(message)s"))
    logging.getLogger().addHandler(handler)
    try:
        with json_logs():
            log.warning("one")
        log.warning("two")
    finally:
        logging.getLogger().removeHandler(handler)
    first, second = capsys.readouterr().err.splitlines()
    assert json.loads(first)["message"] == "one"
    assert second == "plain two"


def test_the_variable_and_the_command_line_turn_it_on(tmp_path: Path) -> None:
    code = """
    import logging
    from pyrite import Pipeline, processors
    def note(n):
        logging.getLogger("shop").warning("saw %d", n)
        return n
    flow = Pipeline()
    flow.read_from([1]).map(note, name="noting").write_to(processors.noop())
    if __name__ == "__main__":
        import pyrite
        with pyrite.instance() as pyr:
            pyr.new_light_job(flow).execute().result(10)
    """
    (tmp_path / "flow.py").write_text(textwrap.dedent(code))
    commands = [
        ([sys.executable, "flow.py"], {"PYRITE_LOG": "json"}),
        (
            [sys.executable, "-m", "pyrite", "--log-format=json", "run", "--light", "flow.py:flow"],
            {},
        ),
    ]
    for command, variables in commands:
        done = subprocess.run(
            command, cwd=tmp_path, env=os.environ | variables, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        (line,) = lines_of(done.stderr)
        assert (line["message"], line["vertex"]) == ("saw 1", "noting")
