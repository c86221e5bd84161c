"""A chain of source, map, filter, map and grouped count: the overhead of Pyrite and of other tools
over a plain loop that calls the same five functions."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

import pyrite
from benchmarks.custom import CountByGroup, Halve, Keep, Scale
from benchmarks.peers import Peer
from benchmarks.ratios import AtLeast, AtMost, Side, WrongOutcome, compare, seconds
from benchmarks.work import count, group, halve, keep, plain_loop, scale
from pyrite import processors as p

ITEMS = 2_000_000
PLAIN = "plain loop"
READY_MADE = "ready-made"


def run(console: Console) -> None:
    expected = plain_loop(ITEMS)

    with pyrite.instance() as pyr:

        def light_job(dag: pyrite.DAG) -> Callable[[], float]:
            def timed() -> float:
                pyr.map("counts").clear()
                taken = seconds(lambda: pyr.new_light_job(dag).execute().result())
                if dict(pyr.map("counts")) != expected:
                    raise WrongOutcome("the DAG gave other counts than the plain loop")
                return taken

            return timed

        table = compare(
            "chain",
            [
                Side(name=PLAIN, items=ITEMS, run=lambda: seconds(lambda: plain_loop(ITEMS))),
                Side(
                    name=READY_MADE,
                    items=ITEMS,
                    run=light_job(ready_made_dag()),
                    aim=AtMost(times=1.3, than=PLAIN),
                ),
                Side(
                    name="custom processors",
                    items=ITEMS,
                    run=light_job(custom_dag()),
                    aim=AtMost(times=4, than=PLAIN),
                ),
                _peer(
                    "Bytewax, one by one",
                    "benchmarks.with_bytewax",
                    "one_by_one",
                    200_000,
                    rounds=2,
                ),
                _peer(
                    "Bytewax, in batches",
                    "benchmarks.with_bytewax",
                    "in_batches",
                    1_000_000,
                    rounds=5,
                ),
                _peer("Beam, created", "benchmarks.with_beam", "created", 200_000, rounds=2),
                _peer("Beam, generated", "benchmarks.with_beam", "generated", 1_000_000, rounds=5),
            ],
        )
    console.print(table)


def ready_made_dag() -> pyrite.DAG:
    return _dag(p.map(scale), p.filter(keep), p.map(halve), p.group_and_accumulate(group, 0, count))


def custom_dag() -> pyrite.DAG:
    return _dag(Scale, Keep, Halve, CountByGroup)


def _dag(*suppliers: object) -> pyrite.DAG:
    dag = pyrite.DAG()
    numbers = dag.vertex("numbers", p.read_items(range(ITEMS)))
    scaled, kept, halved, counted = map(
        dag.vertex, ("scaled", "kept", "halved", "counted"), suppliers
    )
    counts = dag.vertex("counts", p.write_map("counts"))
    dag.edge(pyrite.between(numbers, scaled)).edge(pyrite.between(scaled, kept)).edge(
        pyrite.between(kept, halved)
    )
    dag.edge(pyrite.between(halved, counted).partitioned(key=group)).edge(
        pyrite.between(counted, counts)
    )
    return dag


def _peer(name: str, module: str, function: str, items: int, *, rounds: int) -> Side:
    """A slow peer gets fewer items and rounds. A fast one gets as many rounds as Pyrite, because
    the best time of fewer rounds would be worse."""
    peer = Peer(module, function)
    return Side(
        name=name,
        items=items,
        run=lambda: peer.run(items),
        rounds=rounds,
        aim=AtLeast(times=10, than=READY_MADE),
    )
