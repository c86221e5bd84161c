"""The view of an execution: what the page, the notebook and the terminal show."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass

import pytest

import pyrite
from pyrite import DAG, between, processors
from pyrite.errors import JobFailed
from pyrite.instances import Instance
from pyrite.job import Execution
from pyrite.watching.observers import add_observer, remove_observer
from pyrite.watching.observing import failure_of, step_text, view_of
from pyrite.watching.rates import Rates
from pyrite.watching.secrets import without_secrets
from pyrite.watching.views import RunView


def _squares(fails_at: int = -1) -> DAG:
    dag = DAG()
    numbers = dag.vertex("numbers", processors.read_items(range(100)))
    squares = dag.vertex("squares", processors.map(lambda n: 1 // (n - fails_at) * n))
    out = dag.vertex("out", processors.noop())
    return dag.edge(between(numbers, squares).partitioned(key=lambda n: n)).edge(
        between(squares, out)
    )


def test_a_completed_run_has_all_counts(pyr: Instance) -> None:
    execution = pyr.new_light_job(_squares()).execute()
    execution.result(10)
    view = view_of(execution)
    assert (view.state, view.kind, view.items_in, view.items_out) == (
        "completed",
        "light",
        100,
        100,
    )
    assert {vertex.state for vertex in view.vertices} == {"completed"}
    assert [edge.label for edge in view.edges] == ["partitioned", ""]


def test_a_failed_run_names_the_vertex_the_item_and_the_users_lines(pyr: Instance) -> None:
    execution = pyr.new_light_job(_squares(fails_at=42)).execute()
    with pytest.raises(JobFailed):
        execution.result(10)
    view = view_of(execution)
    assert view.failure is not None
    assert (view.failure.vertex, view.failure.item) == ("squares", "42")
    assert "test_observing.py" in view.failure.traceback
    assert [v.state for v in view.vertices if v.name == "squares"] == ["failed"]


def test_a_view_is_the_same_after_json(pyr: Instance) -> None:
    execution = pyr.new_light_job(_squares(fails_at=3)).execute()
    execution.exception(10)
    view = view_of(execution)
    assert RunView.from_json(json.loads(json.dumps(view.to_json()))) == view


def test_rates_are_the_items_of_the_last_seconds() -> None:
    rates = Rates()
    views = [_view(second, 100 * second) for second in range(9)] + [_view(9, 1800)]
    seen = [rates.added_to(view).vertices[0].received_rate for view in views]
    assert seen[8] == pytest.approx(100)
    assert seen[9] == pytest.approx((1800 - 400) / 5)


def _view(second: int, received: int) -> RunView:
    return RunView.from_json(
        {
            "id": "1",
            "job_id": "2",
            "name": "n",
            "kind": "light",
            "state": "running",
            "submitted": 0.0,
            "seen": float(second),
            "vertices": [{"name": "a", "received": received}],
        }
    )


def test_an_observer_hears_of_each_run_and_cannot_break_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[str] = []
    ended = threading.Event()

    class Broken:
        def began(self, execution: Execution) -> None:
            heard.append(execution.id)
            execution.add_done_callback(lambda _: ended.set())
            raise RuntimeError("broken observer")

    observer = Broken()
    add_observer(observer)
    try:
        with pyrite.instance() as own:
            execution = own.new_light_job(_squares()).execute()
            execution.result(10)
            assert ended.wait(10)
    finally:
        remove_observer(observer)
    assert heard == [execution.id]
    assert "broken observer" in caplog.text


def test_the_step_of_a_vertex_names_its_functions_with_their_lines() -> None:
    def twice(n: int) -> int:
        return 2 * n

    text = step_text(DAG().vertex("double", processors.map(twice)))
    assert "twice, test_observing.py line " in text
    assert " at 0x" not in text


def test_the_text_of_a_step_has_no_secrets() -> None:
    @dataclass(frozen=True)
    class Fetch:
        url: str
        password: str

        def __call__(self, count: int) -> list[object]:
            return []

    url = "memory://me:hush@host/a.csv?sig=hush"
    fetch = Fetch("https://hush@host", "hush")
    for supplier in (processors.read_files(url), processors.write_files(url), fetch):
        text = step_text(DAG().vertex("step", supplier))
        assert "host" in text
        assert "hush" not in text


def test_the_text_of_an_error_has_no_secrets() -> None:
    error = JobFailed("no file matches 'memory://me:hush@host/a*.csv?sig=hush'")
    assert "ss" not in failure_of(JobFailed("postgresql://me:p@ss@host/db")).message
    assert failure_of(error).message == "no file matches 'memory://***@host/a*.csv?***'"


@pytest.mark.parametrize("text", ["a://" * 5000, "a://" + ":" * 20_000, "a://b?" * 3000])
def test_secrets_are_looked_for_in_a_moment(text: str) -> None:
    began = time.process_time()
    without_secrets(text)
    assert time.process_time() - began < 0.5


def test_the_text_of_a_step_is_made_once_and_costs_little() -> None:
    @dataclass
    class Enrich:
        table: dict[int, Loud]

        def __call__(self, count: int) -> list[object]:
            return []

    class Loud:
        def __repr__(self) -> str:
            asked.append(self)
            return "loud"

    asked: list[Loud] = []
    vertex = DAG().vertex("enrich", Enrich({n: Loud() for n in range(10_000)}))
    assert "loud" in step_text(vertex)
    assert len(asked) < 500
    asked.clear()
    assert "loud" in step_text(vertex)
    assert asked == []
