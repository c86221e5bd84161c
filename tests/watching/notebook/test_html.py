"""What a notebook shows of DAGs, pipelines, executions and runs: HTML that stands alone."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pyrite import DAG, Pipeline, between
from pyrite import processors as p
from pyrite.instances import Instance
from pyrite.watching.notebook.runs import ROWS_SHOWN, run_html
from pyrite.watching.observing import view_of
from pyrite.watching.views import EdgeView, HeavyKey, RunView, StageView, VertexView
from pyrite.workload import Run, Schedule, Workload


def _pipeline(name: str = "out") -> Pipeline:
    pipe = Pipeline()
    numbers = pipe.read_from(range(100), name="numbers").map(lambda n: 10 // (n - 200), name="map")
    numbers.write_to(p.noop(), name=name)
    return pipe


def _view(**given: object) -> RunView:
    view = RunView(
        id="1", job_id="2", name="words", kind="normal", state="running", submitted=10.0, seen=20.0
    )
    return replace(view, **given)  # type: ignore[arg-type]


class _Balanced(HTMLParser):
    """Checks that each tag is closed, and that nothing is loaded or run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "link", "img", "iframe")
        assert not any(name.startswith("on") or name == "src" for name, _ in attrs)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data} " if not self.open or self.open[-1] != "style" else ""


def shown(html: str) -> str:
    """The text of HTML that is well-formed and needs nothing from elsewhere."""
    parser = _Balanced()
    parser.feed(html)
    parser.close()
    assert not parser.open
    assert "@import" not in html
    assert "url(" not in html
    return " ".join(parser.text.split())


def svg_of(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])


def test_a_dag_is_drawn() -> None:
    dag = DAG()
    dag.edge(between(dag.vertex("a", p.read_items([1])), dag.vertex("b", p.noop())))
    html = dag._repr_html_()
    assert shown(html).startswith("DAG 2 vertices, 1 edge")
    assert "a → b" in "".join(svg_of(html).itertext())
    assert dag._repr_mimebundle_()["text/html"] == html


def test_a_pipeline_is_drawn_as_the_dag_that_it_makes() -> None:
    text = shown(_pipeline()._repr_html_())
    assert text.startswith("Pipeline 3 vertices, 2 edges")
    assert "cannot run" not in text


def test_a_pipeline_that_is_not_finished_is_drawn_and_says_what_is_missing() -> None:
    pipe = Pipeline()
    pipe.read_from([1], name="numbers").map(str, name="texts")
    text = shown(pipe._repr_html_())
    assert "texts" in text
    assert "It cannot run yet: the stage 'numbers'" in text
    assert "the pipeline is empty" in shown(Pipeline()._repr_html_())


def test_a_stage_shows_what_leads_to_it() -> None:
    numbers = Pipeline().read_from([1], name="numbers")
    text = shown(numbers.map(str, name="texts")._repr_html_())
    assert text.startswith("Stage 'texts' 2 vertices, 1 edge")
    batches = numbers.batches({"n": "int64"}).select("n")
    assert "select" in shown(batches._repr_html_())


def test_an_execution_is_drawn_with_its_counts(pyr: Instance) -> None:
    execution = pyr.new_light_job(_pipeline()).execute()
    execution.result(10)
    html = execution._repr_html_()
    text = shown(html)
    assert "completed" in text
    assert "light job" in text
    assert "100 items in" in text
    assert "100 in · 100 out" in "".join(svg_of(html).itertext())


def test_a_failure_is_shown_with_its_traceback(pyr: Instance) -> None:
    pipe = Pipeline()
    pipe.read_from([1, 0]).map(lambda n: 1 // n, name="divide").write_to(p.noop())
    execution = pyr.new_light_job(pipe).execute()
    execution.exception(10)
    text = shown(execution._repr_html_())
    assert "failed in vertex 'divide'" in text
    assert "test_html.py" in text.partition("traceback")[2]


def test_names_and_messages_are_escaped(pyr: Instance) -> None:
    execution = pyr.new_light_job(_pipeline("<script>alert(1)</script>")).execute()
    execution.result(10)
    assert "<script>alert(1)</script>" in shown(execution._repr_html_())


def test_stages_memory_skew_and_heaviest_keys_are_shown() -> None:
    key = HeavyKey(edge="a -> b", key="'the'", count=430, share=0.43)
    vertex = VertexView(name="b", skew=3.2, spilled_bytes=5_000_000, heaviest_keys=(key,))
    view = _view(
        vertices=(VertexView(name="a"), vertex),
        edges=(EdgeView(source="a", destination="b", fill=12, capacity=1000),),
        stages=(StageView(label="a + b", done=3, total=8, rate=0.5),),
        page="http://localhost:4040/jobs/job/?id=1",
    )
    text = shown(run_html(view))
    for words in ("3 of 8", "0.5/s", "x 3.2", "5 MB", "'the': 43%", "Spark's page", "12 of 1 k"):
        assert words in text
    assert 'href="http://localhost:4040/jobs/job/?id=1"' in run_html(view)


def test_a_page_that_is_no_web_page_is_no_link() -> None:
    assert "href" not in run_html(_view(page="javascript:alert(1)"))


def test_a_large_run_stays_small() -> None:
    vertices = tuple(VertexView(name=f"load {n}") for n in range(3000))
    html = run_html(_view(vertices=vertices))
    assert html.count("<tr>") <= ROWS_SHOWN + 1
    assert f"and {3000 - ROWS_SHOWN:,} more vertices" in shown(html)
    assert len(html) < 200_000


@pytest.fixture
def run_of_three(tmp_path: Path) -> Run:
    def fails() -> None:
        raise ValueError("no <data>")

    jobs = [
        {"job": "a", "command": int},
        {"job": "b", "command": fails},
        {"job": "c", "command": int},
    ]
    run = Workload.from_table(jobs).run(
        Schedule([("a", "b"), ("b", "c")]), workers=1, kind="transient", store=tmp_path / "run"
    )
    return run.wait()


def test_a_run_of_a_workload_is_drawn_with_the_states_of_its_jobs(run_of_three: Run) -> None:
    html = run_of_three._repr_html_()
    text = shown(html)
    assert "3 of 3 jobs have ended: 1 done, 1 failed, 1 blocked" in text
    assert "ValueError: no <data>" in text
    assert "FAILED" in "".join(svg_of(html).itertext())


def test_the_view_of_a_running_job_can_be_shown(pyr: Instance) -> None:
    execution = pyr.new_light_job(_pipeline()).execute()
    assert "words" not in shown(run_html(view_of(execution)))
    execution.result(10)
