"""Single operations next to the plain Python, pyarrow or Spark that does the same."""

from __future__ import annotations

import itertools
import random
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from rich.console import Console

import pyrite
from benchmarks.on_spark import timed, word_sides
from benchmarks.ratios import AtLeast, AtMost, Side, WrongOutcome, compare, seconds
from pyrite import DAG, AbstractProcessor, JobConfig, between
from pyrite import processors as p
from pyrite.partitioning import partition_id

LINES = 200_000
ROWS = 200_000
KEYS = 100_000
QUEUED = 20_000
EXCHANGES, EXCHANGED = 15, 1_000
SMALL_WORDS = 1_000_000
MANY_WORDS = 48_000_000


def run(console: Console) -> None:
    with tempfile.TemporaryDirectory() as folder, pyrite.instance() as pyr:
        console.print(compare("flat maps", _flat_maps(pyr), item="line"))
        console.print(compare("queues of one item", _queues(pyr)))
        console.print(compare("partitions of keys", _keys(), item="key"))
        console.print(compare("text files, copied", _text(pyr, Path(folder)), item="line"))
        console.print(compare("Parquet files, read", _parquet(pyr, Path(folder)), item="row"))
    _on_spark(console)


def _on_spark(console: Console) -> None:
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "2",
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        pyrite.instance(spark_master="local[2, 4]", spark_conf=conf) as pyr,
    ):
        title = f"{EXCHANGES} exchanges of {EXCHANGED} items"
        console.print(compare(title, _exchanges(pyr), item="job"))
        for count, rounds in ((SMALL_WORDS, 6), (MANY_WORDS, 2)):
            (Path(folder) / str(count)).mkdir()
            words = word_sides(pyr, Path(folder) / str(count), count, rounds)
            console.print(compare(f"{count:,} words on Spark", words, item="word"))


class Words(AbstractProcessor):
    def init(self, context: pyrite.ProcessorContext) -> None:
        self._words = self.flat_mapper(str.split)

    def try_process_0(self, item: str) -> bool:
        return self._words(item)


class Next(AbstractProcessor):
    def try_process_0(self, item: int) -> None:
        self.emit(item + 1)


def _line(*vertices: tuple[str, Any], **config: int) -> DAG:
    dag = DAG()
    made = [dag.vertex(name, supplier) for name, supplier in vertices]
    for source, destination in itertools.pairwise(made):
        edge = between(source, destination)
        dag.edge(edge.config(**config) if config else edge)
    return dag


def _light(pyr: pyrite.Instance, name: str, dag: DAG, items: int, aim: Any = None) -> Side:
    return Side(
        name=name,
        items=items,
        run=lambda: seconds(lambda: pyr.new_light_job(dag).execute().result()),
        aim=aim,
    )


def _lines(count: int) -> list[str]:
    choice = random.Random(1)
    vocabulary = [f"word{n}" for n in range(1_000)]
    return [" ".join(choice.choices(vocabulary, k=8)) for _ in range(count)]


def _flat_maps(pyr: pyrite.Instance) -> list[Side]:
    source = ("source", p.read_items(_lines(LINES)))
    count = ("count", p.accumulate(0, lambda n, word: n + 1))
    ready_made = _line(source, ("words", p.flat_map(str.split)), count)
    custom = _line(source, ("words", Words), count)
    name = "p.flat_map"
    aim = AtMost(times=3, than=name)
    return [_light(pyr, name, ready_made, LINES), _light(pyr, "flat_mapper", custom, LINES, aim)]


def _queues(pyr: pyrite.Instance) -> list[Side]:
    vertices = [
        ("source", p.read_items(range(QUEUED))),
        ("a", Next),
        ("b", Next),
        ("count", p.accumulate(0, lambda n, item: n + 1)),
    ]
    return [
        _light(pyr, "queue_size=1024", _line(*vertices), QUEUED),
        _light(pyr, "queue_size=1", _line(*vertices, queue_size=1), QUEUED),
    ]


def _keys() -> list[Side]:
    def side(name: str, keys: list[Any]) -> Side:
        def work() -> None:
            for key in keys:
                partition_id(key)

        return Side(name=name, items=KEYS, run=lambda: seconds(work))

    return [
        side("str", [f"key{n}" for n in range(KEYS)]),
        side("(str, int)", [(f"key{n}", n) for n in range(KEYS)]),
        side("(str, str)", [(f"key{n}", "DE") for n in range(KEYS)]),
    ]


def _text(pyr: pyrite.Instance, folder: Path) -> list[Side]:
    source = folder / "lines.txt"
    source.write_text("\n".join(_lines(LINES)) + "\n")

    def by_hand() -> None:
        with open(source) as lines, open(folder / "copy.txt", "w") as copy:
            for line in lines:
                copy.write(line)

    dag = _line(("read", p.read_files(source)), ("write", p.write_files(folder / "copies")))
    hand = "a loop over lines"
    return [
        Side(name=hand, items=LINES, run=lambda: seconds(by_hand)),
        _light(pyr, "read_files, write_files", dag, LINES, AtMost(times=1.5, than=hand)),
    ]


def _parquet(pyr: pyrite.Instance, folder: Path) -> list[Side]:
    source = folder / "rows.parquet"
    columns = {
        "id": list(range(ROWS)),
        "price": [n / 7 for n in range(ROWS)],
        "name": [f"name {n % 1000}" for n in range(ROWS)],
        "flag": [n % 3 == 0 for n in range(ROWS)],
    }
    pa.parquet.write_table(pa.table(columns), source, row_group_size=50_000)

    def to_pylist() -> None:
        if len(pa.parquet.read_table(source).to_pylist()) != ROWS:
            raise WrongOutcome("rows were lost")

    dag = _line(
        ("read", p.read_files(source, format="parquet")),
        ("count", p.accumulate(0, lambda n, row: n + 1)),
    )
    return [
        _light(pyr, "read_files", dag, ROWS),
        # The aim is that Pyrite takes at most 1.3 x as long.
        Side(
            name="read_table().to_pylist()",
            items=ROWS,
            run=lambda: seconds(to_pylist),
            aim=AtLeast(times=1 / 1.3, than="read_files"),
        ),
    ]


def _exchanges(pyr: pyrite.Instance) -> list[Side]:
    context = pyr.spark().sparkContext
    dag = DAG()
    last = dag.vertex("source", p.read_items(range(EXCHANGED)))
    for number in range(EXCHANGES):
        following = dag.vertex(f"pass {number}", p.noop())
        dag.edge(between(last, following).distributed())
        last = following
    dag.edge(between(last, dag.vertex("sink", p.write_list("out"))))

    def ours() -> None:
        pyr.list("out").clear()
        pyr.new_job(dag, JobConfig(members=2)).execute().result()
        if len(pyr.list("out")) != EXCHANGED:
            raise WrongOutcome("items were lost")

    def rdd() -> None:
        items = context.parallelize(range(EXCHANGED), 2)
        for _ in range(EXCHANGES):
            items = items.map(lambda item: item).repartition(2)
        if len(items.collect()) != EXCHANGED:
            raise WrongOutcome("items were lost")

    return [timed("RDD, repartition", 1, rdd), timed("pyrite", 1, ours)]
