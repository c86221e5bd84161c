"""Both halves of a grouping in one processor: the second only finishes what the first has made."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyrite import DAG, between, instance
from pyrite import processors as p
from pyrite.columns.grouping import grouping

AGGREGATES = {"x": ("x", "mean"), "n": ("x", "count_distinct")}
BATCHES = [pa.record_batch({"k": ["a", "b", "a"], "x": [1, 2, 3]})] * 3


def halves(*, parallelism: int) -> list[dict[str, Any]]:
    dag = DAG()
    read = dag.vertex("read", p.read_items(BATCHES), local_parallelism=1)
    partial, final = (
        p.group_batches(["k"], AGGREGATES, partial=is_first, final=not is_first)
        for is_first in (True, False)
    )
    first = dag.vertex("first", partial, local_parallelism=parallelism)
    second = dag.vertex("second", final, local_parallelism=parallelism)
    rows = dag.vertex("rows", p.rows(), local_parallelism=parallelism)
    dag.edge(between(read, first))
    dag.edge(between(first, second).partitioned(columns=["k"]))
    dag.edge(between(second, rows).isolated())
    dag.edge(between(rows, dag.vertex("list", p.write_list("found"))))
    with instance(cooperative_threads=2) as pyr:
        pyr.new_light_job(dag).execute().result()
        return sorted(pyr.list("found"), key=lambda row: row["k"])


@pytest.mark.parametrize("parallelism", [1, 2])
def test_the_second_half_groups_only_what_several_processors_have_made(
    parallelism: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    init = grouping.Grouping.__init__

    def watched(self: grouping.Grouping, spec: Any, **options: Any) -> None:
        opened.append(options["vertex"])
        init(self, spec, **options)

    monkeypatch.setattr(grouping.Grouping, "__init__", watched)
    found = halves(parallelism=parallelism)
    assert found == [{"k": "a", "x": 2.0, "n": 2}, {"k": "b", "x": 2.0, "n": 1}]
    assert sorted(opened) == (["first"] if parallelism == 1 else ["first"] * 2 + ["second"] * 2)
