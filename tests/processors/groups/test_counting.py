"""Counting whole lists at a time gives the same counts and errors as the loop over single items."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyrite
from pyrite import DAG, JobFailed, between
from pyrite import processors as p
from pyrite.processors.groups import spill
from pyrite.processors.groups.counting import merge_nans
from pyrite.processors.loops import loop
from pyrite.processors.loops.chain import Chain
from pyrite.processors.loops.fused import Link


def word_count(lists: list[Any], *, initial: Any = 0) -> DAG:
    dag = DAG()
    source, words = (
        dag.vertex("lists", p.read_items(lists)),
        dag.vertex("words", p.flat_map(lambda words: words)),
    )
    count = dag.vertex(
        "count",
        p.group_and_accumulate(key=lambda w: w, initial=initial, accumulate=lambda n, w: n + 1),
    )
    dag.edge(between(source, words)).edge(between(words, count).partitioned(key=lambda w: w))
    return dag.edge(between(count, dag.vertex("sink", p.write_map("counts"))))


def counted(lists: list[Any], **options: Any) -> dict[Any, Any]:
    with pyrite.instance(cooperative_threads=1) as pyr:
        pyr.new_light_job(word_count(lists, **options)).execute().result()
        return dict(pyr.map("counts"))


def test_lists_are_counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(
        loop,
        "_compiled",
        lambda source, real=loop._compiled: written.append(source) or real(source),
    )
    assert counted([["a", "b"], ["a"]]) == {"a": 2, "b": 1}
    assert any("count2(state, part0)" in source for source in written)


words = st.sampled_from(["a", "b", "c", 1, 1.0, True, 2, (1, "a")])


@given(st.lists(st.lists(words) | st.lists(words).map(tuple)))
def test_the_counts_are_those_of_a_counter(lists: list[Any]) -> None:
    assert counted(lists) == Counter(word for each in lists for word in each)


def test_another_initial_value_is_heeded() -> None:
    assert counted([["a", "a", "b"]], initial=10) == {"a": 12, "b": 11}
    assert counted([["a", "b"]], initial=0.0) == {"a": 1.0, "b": 1.0}


@pytest.mark.parametrize(
    ("word", "vertex", "item", "message"),
    [
        (None, "words", ["a", None, "b"], "vertex 'words' emitted None"),
        ([1], "count", [1], "unhashable"),
        (object, "words", object, "cannot be a partition key"),
    ],
)
def test_a_bad_word_is_named(word: Any, vertex: str, item: Any, message: str) -> None:
    with pytest.raises(JobFailed, match=message) as raised:
        counted([["a"], ["a", word, "b"]])
    assert (raised.value.vertex, raised.value.item) == (vertex, item)


def test_when_memory_is_short_the_rest_is_spilled() -> None:
    flat, count = (
        p.flat_map(lambda words: words),
        p.group_and_accumulate(lambda w: w, 0, lambda n, w: n + 1),
    )
    chain = Chain([Link("words", flat.step), Link("count", count.step)], emits=True)
    state: dict[Any, int] = {"a": 1}
    kept = spill.Spill(spill.Memory(1 << 40))
    kept.limit = 1
    spilled: list[Any] = []
    kept.add = lambda key, item: spilled.append((key, item))  # type: ignore[method-assign]
    list(chain.loop.run([["a", "b"], ["a", "c"]], [], 1, [0, 0], state, kept))
    assert (state, spilled) == ({"a": 3}, [("b", "b"), ("c", "c")])


def test_counts_of_nans_are_added_up_over_several_lists() -> None:
    state: dict[Any, int] = {}
    for _ in range(3):
        before = len(state)
        new = [float("nan"), float("nan"), "a"]
        for item in new:
            state[item] = state.get(item, 0) + 1
        merge_nans(state, len(state) - before)
    assert {str(key): count for key, count in state.items()} == {"a": 3, "nan": 6}
    assert len(state) == 2
