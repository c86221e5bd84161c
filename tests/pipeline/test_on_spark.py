"""Pipelines on Spark give what they give here."""

from __future__ import annotations

import pytest

from pyrite import Instance, Pipeline, agg


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


def test_groups_unions_top_and_sort(local_spark: Instance) -> None:
    words = Pipeline().read_from(["a b", "b c", "c c"]).flat_map(str.split)
    counts = words.group_by(lambda w: None if w == "a" else w).aggregate(agg.count(), agg.first())
    pairs = counts.map(lambda t: t[:2])
    both = pairs.union(words.top(1).map(lambda w: (w, 0))).sort(key=lambda t: (t[1], t[0] or ""))
    assert both.collect(on=local_spark) == [("c", 0), (None, 1), ("b", 2), ("c", 3)]
    assert local_spark.collections() == []
