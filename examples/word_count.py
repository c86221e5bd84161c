"""Counts the words of some lines: first on each member, then the totals over all members. So few
counts are sent between machines."""

from __future__ import annotations

import pyrite
from pyrite import DAG, between
from pyrite import processors as p

LINES = ["the stone strikes the flint", "the spark lights the moss", "the fire is lit"]


def word_count() -> DAG:
    dag = DAG()
    lines = dag.vertex("lines", p.read_items(LINES))
    words = dag.vertex("words", p.flat_map(str.split))
    count = dag.vertex(
        "count", p.group_and_accumulate(key=lambda w: w, initial=0, accumulate=lambda n, w: n + 1)
    )
    total = dag.vertex(
        "total",
        p.group_and_accumulate(key=lambda kv: kv[0], initial=0, accumulate=lambda n, kv: n + kv[1]),
    )
    sink = dag.vertex("sink", p.write_map("counts"))
    dag.edge(between(lines, words))
    dag.edge(between(words, count).partitioned(key=lambda w: w))
    dag.edge(between(count, total).distributed().partitioned(key=lambda kv: kv[0]))
    dag.edge(between(total, sink))
    return dag


dag = word_count()

if __name__ == "__main__":
    with pyrite.instance() as pyr:
        pyr.new_light_job(dag).execute().result()
        for word, times in sorted(pyr.map("counts").items(), key=lambda kv: -kv[1])[:3]:
            print(times, word)
