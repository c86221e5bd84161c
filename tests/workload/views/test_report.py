"""The report of a run: what is in it, that it is safe to open, and that its size is bounded."""

from __future__ import annotations

import os
import signal
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from pyrite.system.alive import NOBODY
from pyrite.workload import JobState, Run, Workload
from pyrite.workload.storage.store import Status
from pyrite.workload.views.report.facts import Facts, Failure
from pyrite.workload.views.report.graph import graph
from pyrite.workload.views.report.page import page
from pyrite.workload.views.report.timechart import Bar, axis, joined, lanes
from tests.workload import commands
from tests.workload.conftest import processes_of, wait_until

HOSTILE = "</pre><script>alert('x')</script><img src=x onerror=alert(1)>\"'&\x1b[31m"


def row(job: str, state: JobState = JobState.DONE, **fields: Any) -> dict[str, Any]:
    names = ("attempt", "worker", "started", "ended", "seconds", "error")
    return {"job": job, "state": state, **dict.fromkeys(names), "selected": True, **fields}


def facts(rows: list[dict[str, Any]], **fields: Any) -> Facts:
    status = Status("ended", NOBODY, 1, {"workers": 2, "kind": "persistent"}, 100.0, 200.0)
    given: dict[str, Any] = {
        "store": Path("/runs/night"),
        "phase": "ended",
        "status": status,
        "edges": [],
        "failures": [],
        "critical_path": 1.0,
        "now": 300.0,
    }
    return Facts(rows=rows, **{**given, **fields})


class Seen(HTMLParser):
    """The elements, the attributes and the text of a page, outside its own style and script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_jobs_are_called_and_write_is_text_and_nothing_is_loaded() -> None:
    bad = row(HOSTILE, JobState.FAILED, error=HOSTILE, worker=HOSTILE, started=1.0, ended=2.0)
    failure = Failure(bad, HOSTILE, 3, HOSTILE)
    edges = [(HOSTILE, "b")]
    shown = page(facts([bad, row("b")], edges=edges, failures=[failure], store=Path(HOSTILE)))
    seen = Seen(shown)
    assert seen.elements["script"] == 1
    assert not seen.elements["img"]
    assert seen.text.count("<script>alert('x')</script>") >= 5
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name == "src"]
    links = [value for name, value in seen.attributes if name in ("href", "action")]
    assert links == ["#failure-0"]


def test_the_size_of_the_report_of_20000_jobs_is_bounded_and_it_says_what_is_left_out() -> None:
    states = [JobState.FAILED if n % 100 == 99 else JobState.DONE for n in range(20_000)]
    rows = [
        row(f"j{n}", state, worker=f"w{n % 300}", started=n / 10, ended=n / 10 + 0.05, seconds=0.05)
        for n, state in enumerate(states)
    ]
    failures = [Failure(row("j99", JobState.FAILED), "x" * 20_000, 0, "")] * 50
    edges = [(f"j{n}", f"j{n + 1}") for n in range(19_999)]
    shown = page(facts(rows, failures=failures, edges=edges))
    assert len(shown) < 4_000_000
    text = Seen(shown).text
    assert "2,000 of 20,000 jobs are shown" in text
    assert "The outputs of 150 other failed jobs are left out." in text
    assert "The graph of 20,000 jobs is folded" in text


def test_the_graph_of_many_jobs_without_names_in_common_is_folded() -> None:
    ids = ["".join(chr(97 + n // 26**k % 26) for k in range(3)) for n in range(400)]
    drawn, note = graph(dict.fromkeys(ids, JobState.DONE), list(pairwise(ids)))
    assert drawn.count('class="box"') == 3
    assert "400 jobs is folded" in note


@pytest.mark.parametrize("phase", ["running", "killed", "cancelled", "broken", "ended"])
def test_there_is_a_report_of_a_run_in_each_phase(phase: str) -> None:
    rows = [row("a", JobState.RUNNING, started=150.0, worker="w1"), row("b", JobState.WAITING)]
    text = Seen(page(facts(rows, phase=phase))).text
    assert phase in text
    assert ("pyrite workload resume /runs/night" in text) == (
        phase in ("killed", "broken", "cancelled")
    )


def test_a_killed_run_is_reported(tmp_path: Path) -> None:
    said = str(tmp_path / "said")
    workload = Workload().add("a", commands.tell_and_wait, args=[said, str(tmp_path / "never")])
    run = workload.add("b", commands.nothing, after="a").run(workers=1, store=tmp_path / "s")
    commands.wait_for(said)
    pid = run.pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not processes_of(tmp_path), 60)
    text = Seen(Run.attach(tmp_path / "s").to_html()).text
    assert f"Its master (process {pid}) was killed" in text
    assert "its master was killed while it ran; resume runs it again" in text


times = some.floats(0, 1e5)
intervals = some.lists(
    some.tuples(times, times).map(lambda pair: (min(pair), max(pair))), min_size=1
)
bars_of_workers = intervals.flatmap(
    lambda found: some.tuples(
        *[
            some.tuples(
                some.sampled_from("uvw"), some.sampled_from((JobState.DONE, JobState.FAILED))
            )
            for _ in found
        ]
    ).map(
        lambda more: [
            (worker, Bar(start, end, state, (str(n),)))
            for n, ((start, end), (worker, state)) in enumerate(zip(found, more))
        ]
    )
)


@given(intervals, some.lists(times))
def test_places_on_the_axis_are_in_order_and_inside(found: Any, more: list[float]) -> None:
    ends = [time for pair in found for time in pair]
    places = axis(found)
    asked = sorted([*ends, *more])
    marks = [places.place(time) for time in asked]
    assert marks == sorted(marks)
    assert all(-1e-9 <= mark <= 1 + 1e-9 for mark in marks)
    assert places.place(min(ends)) == 0


@given(bars_of_workers)
def test_each_job_is_in_one_bar_of_the_row_of_its_worker(found: list[tuple[str, Bar]]) -> None:
    places = axis((bar.start, bar.end) for _, bar in found)
    rows = lanes(found)
    shown = [bar for _, bars in rows for bar in joined(bars, places, 0.01)]
    assert sorted(job for bar in shown for job in bar.jobs) == sorted(
        bar.jobs[0] for _, bar in found
    )
    assert sorted(name for names, _ in rows for name in names) == sorted({w for w, _ in found})
    state_of = {bar.jobs[0]: bar.state for _, bar in found}
    assert all(bar.state is state_of[job] for bar in shown for job in bar.jobs)
