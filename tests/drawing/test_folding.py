"""Large graphs are folded: few boxes, no cycles, every vertex in one of them."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as some

from pyrite.drawing.boxes import Arrow, Box
from pyrite.drawing.folding import folded, groups_of
from tests.drawing.graphs import Edge, boxes_and_arrows, dags, random_dag


def in_order(count: int, edges: set[Edge]) -> bool:
    """Whether the graph has no cycle."""
    left = set(range(count))
    while left:
        free = {n for n in left if not any(b == n and a in left for a, b in edges)}
        if not free:
            return False
        left -= free
    return True


@given(graph=dags(most=40), names=some.lists(some.sampled_from("abc"), min_size=40, max_size=40))
def test_every_vertex_is_in_one_group_and_there_is_no_cycle_between_groups(
    graph: tuple[int, list[Edge]], names: list[str]
) -> None:
    count, edges = graph
    groups = groups_of([f"{names[n]}{n}" for n in range(count)], edges, most=5, widest=4)
    assert sorted(n for group in groups for n in group) == list(range(count))
    group_of = {n: g for g, group in enumerate(groups) for n in group}
    between = {(group_of[a], group_of[b]) for a, b in edges if group_of[a] != group_of[b]}
    assert in_order(len(groups), between)


@given(graph=dags())
def test_a_small_graph_stays_as_it_is(graph: tuple[int, list[Edge]]) -> None:
    count, edges = graph
    groups = groups_of([f"v{n}" for n in range(count)], edges, widest=100)
    assert groups == [[n] for n in range(count)]


def test_numbered_siblings_are_one_box() -> None:
    names = [f"{step}{n}" for step in ("load", "clean") for n in range(1, 101)] + ["join"]
    edges = [(n, n + 100) for n in range(100)] + [(n + 100, 200) for n in range(100)]
    found = folded(*boxes_and_arrows(names, edges, "partitioned"))
    assert [box.name for box in found.boxes] == ["load[1..100]", "clean[1..100]", "join"]
    assert found.boxes[0].note == "100 vertices"
    assert found.arrows == [
        Arrow("load[1..100]", "clean[1..100]", "partitioned"),
        Arrow("clean[1..100]", "join", "partitioned"),
    ]
    assert [box.name for box in found.members["clean[1..100]"]] == names[100:200]


def test_siblings_with_the_same_neighbours_are_one_box() -> None:
    words = [f"word-{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(70)]
    names = ["start", *words, "end"]
    edges = [(0, n) for n in range(1, 71)] + [(n, 71) for n in range(1, 71)]
    found = folded(*boxes_and_arrows(names, edges))
    assert [box.name for box in found.boxes] == ["start", "word-*", "end"]


def test_a_chain_is_one_box_between_its_ends() -> None:
    names = [f"step{n}" for n in range(300)]
    found = folded(*boxes_and_arrows(names, [(n, n + 1) for n in range(299)]))
    assert [box.name for box in found.boxes] == ["step0", "step[1..298]", "step299"]


def test_the_groups_that_a_person_opens_are_not_folded() -> None:
    names = [f"load{n}" for n in range(100)] + [f"save{n}" for n in range(100)]
    graph = boxes_and_arrows(names, [(n, n + 100) for n in range(100)])
    opened = folded(*graph, unfold=["load[0..99]"])
    assert [box.name for box in opened.boxes] == [*names[:100], "save[0..99]"]
    assert len(folded(*graph, unfold="*").boxes) == 200


def test_a_group_of_jobs_says_how_many_are_in_which_state() -> None:
    boxes = [Box(f"j{n}", "DONE" if n < 90 else "FAILED", "#000") for n in range(100)]
    (group,) = folded(boxes, []).boxes
    assert group.note == "90 DONE · 10 FAILED"


def test_a_group_never_takes_the_name_of_a_vertex() -> None:
    names = [f"a{n}" for n in range(70)] + ["a[0..69]"]
    found = folded(*boxes_and_arrows(names, []))
    assert len({box.name for box in found.boxes}) == len(found.boxes)


def test_20000_jobs_without_any_pattern_are_folded_by_layers() -> None:
    names = [chr(0x4E00 + n) for n in range(20_000)]
    start = time.process_time()
    found = folded(*boxes_and_arrows(names, random_dag(20_000, 40_000)))
    assert time.process_time() - start < 5
    assert len(found.boxes) <= 240
