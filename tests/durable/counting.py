"""The job of the fault runs: in -> map -> partitioned count -> out."""

from __future__ import annotations

from collections import Counter

from pyrite import DAG, between
from pyrite import processors as p

KEYS = 97
BATCH = 1000
"""Items of a message that enters the job."""


def counting(items: int, name: str, *, padding: str = "") -> DAG:
    """Counts the numbers below `items` by their remainder. The padding makes messages long."""
    dag = DAG()
    source = dag.vertex("in", p.read_items(range(items)))
    mapped = dag.vertex("map", p.map(lambda n: (n % 97, f"{n}{padding}")))
    count = dag.vertex(
        "count",
        p.group_and_accumulate(
            key=lambda pair: pair[0], initial=0, accumulate=lambda so_far, _: so_far + 1
        ),
    )
    out = dag.vertex("out", p.write_map(name))
    dag.edge(between(source, mapped))
    dag.edge(between(mapped, count).distributed().partitioned(key=lambda pair: pair[0]))
    dag.edge(between(count, out))
    return dag


def expected(items: int) -> dict[int, int]:
    return dict(Counter(n % KEYS for n in range(items)))
