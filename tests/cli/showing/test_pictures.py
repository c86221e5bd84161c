"""What a terminal shows of a run: it always fits, and the most important things stay."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console, RenderableType

from pyrite.cli.showing.columns import Column, fitting
from pyrite.cli.showing.pictures import line_of, picture_of
from pyrite.cli.showing.vertices import vertices_table
from pyrite.watching.choosing import most_active
from pyrite.watching.rates import Rates
from pyrite.watching.views import EdgeView, RunView, StageView, VertexState, VertexView

STATES: tuple[VertexState, ...] = ("waiting", "running", "completed", "failed", "cancelled")
COUNTS = st.integers(0, 10**12)
VERTICES = st.builds(
    VertexView,
    name=st.text(min_size=1, max_size=60),
    state=st.sampled_from(STATES),
    received=COUNTS,
    emitted=COUNTS,
    skipped=st.integers(0, 3),
    received_rate=st.floats(0, 1e9),
    emitted_rate=st.floats(0, 1e9),
    busy_seconds=st.floats(0, 1e6),
    spilled_bytes=st.integers(0, 10**13),
)
STAGES = st.builds(
    StageView, label=st.text(max_size=60), done=st.integers(0, 9999), total=st.integers(0, 9999)
)


def run_of(**given: object) -> RunView:
    view = RunView(
        id="1", job_id="2", name="words", kind="light", state="running", submitted=100.0, seen=110.0
    )
    return replace(view, **given)  # type: ignore[arg-type]


def printed(what: RenderableType, width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(what)
    return captured.get().splitlines()


@settings(max_examples=30)
@given(
    st.lists(VERTICES, max_size=40, unique_by=lambda each: each.name),
    st.lists(STAGES, max_size=20),
    st.integers(60, 200),
    st.integers(12, 60),
)
def test_a_picture_fits_into_the_terminal(
    vertices: list[VertexView], stages: list[StageView], width: int, height: int
) -> None:
    view = run_of(vertices=tuple(vertices), stages=tuple(stages))
    lines = printed(picture_of(view, width=width, height=height), width)
    assert len(lines) < height
    assert all(cell_len(line) <= width for line in lines)


@given(
    st.lists(st.tuples(st.text(max_size=30), st.integers(0, 5)), min_size=1, max_size=8),
    st.integers(10, 120),
)
def test_columns_are_left_out_by_rank_until_the_others_fit(
    given: list[tuple[str, int]], width: int
) -> None:
    columns = [Column(title="c", cells=[text], rank=rank) for text, rank in given]
    kept = fitting(columns, width)
    left_out = [each for each in columns if all(each is not other for other in kept)]
    assert kept[0] is columns[0]
    assert [each for each in columns if any(each is other for other in kept)] == kept
    assert all(each.rank for each in left_out)
    others = [each.rank for each in kept[1:]]
    assert not left_out or max(others, default=0) <= min(each.rank for each in left_out)


def test_a_narrow_table_keeps_names_and_counts() -> None:
    vertex = VertexView(name="n" * 50, received=10**9, emitted=10**9, received_rate=5.0)
    header, row = printed(vertices_table([vertex], 45), 45)
    assert header.split() == ["vertex", "received", "emitted"]
    assert row.startswith("nnnnnnnnnnn")
    assert "…" in row
    assert "1,000,000,000" in row


def test_of_many_vertices_those_stay_that_failed_or_do_most() -> None:
    vertices = [VertexView(name=str(n), emitted_rate=float(n), state="running") for n in range(9)]
    vertices[3] = replace(vertices[3], state="failed")
    assert [each.name for each in most_active(vertices, 3)] == ["3", "7", "8"]


def test_a_line_tells_the_tasks_and_the_items_with_their_rates() -> None:
    view = run_of(
        vertices=(VertexView(name="a", emitted=500), VertexView(name="b", received=100)),
        edges=(EdgeView(source="a", destination="b"),),
        stages=(StageView(label="a", done=1, total=4),),
    )
    assert line_of(Rates().added_to(view)) == (
        "words: running for 10.0 s, 1 of 4 tasks are done, 500 items in (50/s), "
        "100 items out (10/s)"
    )


def test_a_stage_has_the_rate_of_its_tasks_in_the_last_seconds() -> None:
    rates = Rates()
    rates.added_to(run_of(seen=120.0, stages=(StageView(label="a", done=10, total=40),)))
    view = rates.added_to(run_of(seen=125.0, stages=(StageView(label="a", done=20, total=40),)))
    assert view.stages[0].rate == 2.0
