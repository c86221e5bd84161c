"""Finds the numbers with the longest Collatz sequences, on two member processes: the work uses two
cores, and equal lengths meet on one member."""

from __future__ import annotations

import pyrite
from pyrite import DAG, between
from pyrite import processors as p


def length(number: int) -> int:
    """The number of steps from a number to 1."""
    steps = 0
    while number != 1:
        number = number // 2 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps


dag = DAG()
numbers = dag.vertex("numbers", p.read_items(range(1, 3000)))
lengths = dag.vertex("lengths", p.map(lambda number: (length(number), number)))
first = dag.vertex(
    "first",
    p.group_and_accumulate(
        key=lambda pair: pair[0], initial=10**9, accumulate=lambda least, pair: min(least, pair[1])
    ),
)
sink = dag.vertex("sink", p.write_map("first of its length"))
dag.edge(between(numbers, lengths))
dag.edge(between(lengths, first).distributed().partitioned(key=lambda pair: pair[0]))
dag.edge(between(first, sink))

if __name__ == "__main__":
    with pyrite.instance(members=2) as pyr:
        pyr.new_light_job(dag).execute().result()
        for steps, number in sorted(pyr.map("first of its length").items())[-3:]:
            print(f"{number} takes {steps} steps")
