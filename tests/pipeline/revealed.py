"""The table of what type checkers infer. `test_types.py` runs mypy and pyright over it, and nothing
runs it: each line says the type of an expression, with nothing but plain lambdas in it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, assert_type

from pyrite import (
    AbstractProcessor,
    BatchGrouped,
    BatchStage,
    Grouped,
    Instance,
    JobFailed,
    Pipeline,
    Sink,
    Source,
    Stage,
    agg,
    service,
)
from pyrite import processors as p
from pyrite.pipeline import Preview, Verification
from pyrite.pipeline.agg import Aggregate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass
class Order:
    customer: str
    total: float


class Row(TypedDict):
    id: int


class Own(AbstractProcessor):
    """A processor of one's own. What it emits is not known."""


async def total_of(order: Order) -> float:
    return order.total


def open_prices() -> AbstractContextManager[dict[str, float]]:
    return nullcontext({"a": 1.0})


async def price_of(db: dict[str, float], word: str) -> float:
    return db[word]


prices = service(lambda: {"a": 1.0}, close=lambda db: db.clear())
pipe = Pipeline()
orders = pipe.read_from([Order("a", 1.0)])
words = pipe.read_from(["a b"]).flat_map(str.split)
lines = pipe.read_from(p.read_files("*.txt"))
rows = pipe.read_from(p.read_files("*.csv", format="csv"))
values = pipe.read_from(p.read_files("*.jsonl", format="jsonl"))
grouped = orders.group_by(lambda o: o.customer)

# Sources, and the stages that read them
assert_type(p.read_items([1]), Source[int])
assert_type(p.read_items(Order(c, 1) for c in "ab"), Source[Order])
assert_type(p.read_files("*.txt"), Source[str])
assert_type(p.read_files("*.txt", format="text", encoding="latin-1"), Source[str])
assert_type(p.read_files("*.csv", "csv"), Source[dict[str, Any]])
assert_type(p.read_files("*.parquet", format="parquet"), Source[dict[str, Any]])
assert_type(p.read_files("*.jsonl", format="jsonl"), Source[Any])
assert_type(p.read_files("*.txt", with_path=True), Source[tuple[str, str]])
assert_type(p.read_files("*", format="csv", with_path=True), Source[tuple[str, dict[str, Any]]])
assert_type(p.read_files("*", format="jsonl", with_path=True), Source[tuple[str, Any]])
assert_type(p.read_files("*", format=input()), Source[Any])
assert_type(p.read_sql("sqlite://", "orders"), Source[dict[str, Any]])
assert_type(p.read_list("list"), Source[Any])
assert_type(p.read_map("map"), Source[tuple[Any, Any]])
assert_type(pipe.read_from(p.read_items([1])), Stage[int])
assert_type(pipe.read_from({1: "a"}), Stage[int])
assert_type(pipe.read_from("abc"), Stage[str])
assert_type(pipe.read_from(range(3)), Stage[int])
assert_type(pipe.read_from(Own), Stage[Any])
assert_type(pipe.read_from(lambda: Own()), Stage[Any])
assert_type(lines, Stage[str])
assert_type(rows, Stage[dict[str, Any]])
assert_type(values, Stage[Any])
assert_type(pipe.read_from(p.read_map("map")), Stage[tuple[Any, Any]])

# Sinks
assert_type(p.write_files("out"), Sink[Any])
assert_type(p.write_files("out", format="jsonl"), Sink[Any])
assert_type(p.write_files("out", "csv"), Sink[Mapping[str, Any]])
assert_type(p.write_files("out", format="parquet", schema="id long"), Sink[Mapping[str, Any]])
assert_type(p.write_sql("sqlite://", "orders"), Sink[Mapping[str, Any]])
assert_type(p.write_list("list"), Sink[Any])
assert_type(p.write_map("map"), Sink[tuple[Any, Any] | list[Any]])
assert_type(p.write_spark(lambda df: df.count(), "word string"), Sink[Any])

# Steps that take one item at a time
assert_type(orders, Stage[Order])
assert_type(words, Stage[str])
assert_type(orders.map(lambda o: o.total), Stage[float])
assert_type(rows.map(lambda row: (row["id"], row["name"].upper())), Stage[tuple[Any, Any]])
assert_type(orders.filter(lambda o: o.total > 0), Stage[Order])
assert_type(orders.filter_map(lambda o: o.customer if o.total else None), Stage[str])
assert_type(orders.flat_map(lambda o: [o.total]), Stage[float])
assert_type(orders.inspect(print), Stage[Order])
assert_type(words.batch(2), Stage[list[str]])
assert_type(words.map_batches(lambda b: [len(b)]), Stage[int])
assert_type(words.sample(0.5), Stage[str])

# Steps that await, and steps with a client
assert_type(orders.map(total_of), Stage[float])
assert_type(orders.map(total_of, in_flight=100), Stage[float])
assert_type(words.map_with(prices, lambda db, word: db[word]), Stage[float])
assert_type(words.map_with(open_prices, lambda db, word: db[word]), Stage[float])
assert_type(words.map_with(dict[str, int], lambda db, word: db[word]), Stage[int])
assert_type(words.map_with(open_prices, price_of), Stage[float])
assert_type(words.flat_map_with(prices, lambda db, word: [db[word]]), Stage[float])

# Steps with several stages, or that choose where items go
assert_type(words.union(words), Stage[str])
assert_type(words.union(orders), Stage[str | Order])
assert_type(words.union(orders, words.count()), Stage[str | Order | int])
assert_type(words.rebalance(), Stage[str])
assert_type(words.rebalance(len), Stage[str])
assert_type(words.split(str.isupper), tuple[Stage[str], Stage[str]])
assert_type(words.process(Own), Stage[Any])
inner = orders.join(words, left=lambda o: o.customer, right=lambda w: w.upper())
assert_type(inner, Stage[tuple[Order, str]])
left = orders.join(words, left=lambda o: o.customer, right=str.upper, how="left", broadcast=True)
assert_type(left, Stage[tuple[Order, str | None]])
full = orders.join(words, left=lambda o: o.customer, right=str.upper, how="full")
assert_type(full, Stage[tuple[Order | None, str | None]])
semi = orders.join(words, left=lambda o: o.customer, right=str.upper, how="semi")
assert_type(semi, Stage[Order])
anti = orders.join(words, left=lambda o: o.customer, right=str.upper, how="anti")
assert_type(anti, Stage[Order])
assert_type(inner.map(lambda pair: pair[0].total + len(pair[1])), Stage[float])
sides = orders.co_group(words, left=lambda o: o.customer, right=lambda w: w)
assert_type(sides, Stage[tuple[str, list[Order], list[str]]])

# Steps that need all items
assert_type(words.distinct(), Stage[str])
assert_type(orders.distinct(lambda o: o.customer), Stage[Order])
assert_type(words.count(), Stage[int])
assert_type(words.reduce(lambda a, b: a + b), Stage[str])
assert_type(words.top(3, key=lambda w: w.upper()), Stage[str])
assert_type(words.sort(key=lambda w: w.upper()), Stage[str])
assert_type(words.limit(3), Stage[str])
assert_type(orders.aggregate(agg.count()), Stage[int])
assert_type(orders.aggregate(agg.max(lambda o: o.total)), Stage[float])
assert_type(orders.aggregate(agg.count(), agg.mean(lambda o: o.total)), Stage[tuple[int, float]])

# Groups
assert_type(grouped, Grouped[str, Order])
assert_type(words.group_by(len), Grouped[int, str])
assert_type(grouped.count(), Stage[tuple[str, int]])
assert_type(grouped.reduce(lambda a, b: a if a.total > 1 else b), Stage[tuple[str, Order]])
assert_type(grouped.top(2, key=lambda o: o.total), Stage[tuple[str, list[Order]]])
assert_type(grouped.map_values(lambda o: o.total), Grouped[str, float])
assert_type(grouped.map_values(lambda o: o.total).count(), Stage[tuple[str, int]])
assert_type(grouped.map_groups(lambda k, items: [(k, len(items))]), Stage[tuple[str, int]])
assert_type(grouped.aggregate(agg.count()), Stage[tuple[str, int]])
both = grouped.aggregate(agg.count(), agg.sum(lambda o: o.total))
assert_type(both, Stage[tuple[str, int, float]])
assert_type(both.map(lambda t: t[0].upper() * t[1]), Stage[str])

# Aggregates
assert_type(agg.count(), Aggregate[Any, int])
assert_type(words.aggregate(agg.sum(len)), Stage[int])
assert_type(words.map(len).aggregate(agg.sum()), Stage[int])
assert_type(words.map(len).aggregate(agg.mean()), Stage[float])
assert_type(words.aggregate(agg.mean(len)), Stage[float])
assert_type(words.map(len).aggregate(agg.std()), Stage[float])
assert_type(words.aggregate(agg.std(len, ddof=0)), Stage[float])
assert_type(words.aggregate(agg.min()), Stage[str])
assert_type(words.aggregate(agg.min(lambda w: len(w))), Stage[int])
assert_type(words.aggregate(agg.max()), Stage[str])
assert_type(words.aggregate(agg.first()), Stage[str])
assert_type(words.aggregate(agg.first(len)), Stage[int])
assert_type(words.aggregate(agg.reduce(lambda a, b: a + b)), Stage[str])
assert_type(words.aggregate(agg.top(2)), Stage[list[str]])
assert_type(orders.aggregate(agg.top(2, key=lambda o: o.total)), Stage[list[Order]])
assert_type(orders.aggregate(agg.bottom(2, key=lambda o: o.total)), Stage[list[Order]])
assert_type(words.aggregate(agg.to_list(), agg.to_set()), Stage[tuple[list[str], set[str]]])
assert_type(orders.aggregate(agg.to_list(lambda o: o.total)), Stage[list[float]])
assert_type(orders.aggregate(agg.to_set(lambda o: o.customer)), Stage[set[str]])
assert_type(words.aggregate(agg.to_dict(lambda w: w, len)), Stage[dict[str, int]])
assert_type(words.aggregate(agg.count_distinct()), Stage[int])
assert_type(orders.aggregate(agg.count_distinct(lambda o: o.customer)), Stage[int])
own: Aggregate[str, int] = Aggregate(lambda: 0, lambda n, w: n + len(w), lambda m, n: m + n)
assert_type(words.aggregate(own), Stage[int])
assert_type(
    words.aggregate(
        agg.count(),
        agg.min(),
        agg.max(len),
        agg.to_list(),
        agg.mean(len),
        agg.top(2),
        agg.first(),
        agg.to_set(len),
        agg.std(len),
        agg.sum(lambda w: len(w)),
    ),
    Stage[tuple[int, str, int, list[str], float, list[str], str, set[int], float, int]],
)
assert_type(
    grouped.aggregate(
        agg.count(),
        agg.min(lambda o: o.total),
        agg.top(1, lambda o: o.total),
        agg.mean(lambda o: o.total),
        agg.first(),
        agg.to_set(lambda o: o.customer),
        agg.count_distinct(lambda o: o.total),
        agg.count(),
        agg.to_dict(lambda o: o.customer, lambda o: o.total),
        agg.sum(lambda o: o.total),
    ),
    Stage[
        tuple[
            *tuple[str, int, float, list[Order], float, Order, set[str]],
            *tuple[int, int, dict[str, float], float],
        ]
    ],
)

# Ends
assert_type(words.collect(), list[str])
assert_type(words.preview(3), Preview)
assert_type(words.verify(3), Verification)
words.write_to(p.write_files("out"))
words.write_to(p.write_list("list"))
words.write_to(p.noop())
words.write_to(Own)
words.write_to(lambda: Own())
words.map(lambda w: (w, 1)).write_to(p.write_map("map"))
words.map(lambda w: {"word": w, "n": 1}).write_to(p.write_files("out", format="csv"))
words.map(lambda w: Row(id=len(w))).write_to(p.write_files("out", format="parquet"))
values.write_to(p.write_map("map"))


# Functions of stages, sources and sinks
def larger(stage: Stage[Order], than: float) -> Stage[Order]:
    return stage.filter(lambda o: o.total > than)


def of_anything(stage: Stage[object]) -> Stage[str]:
    return stage.map(str)


def written(stage: Stage[bool], sink: Sink[int]) -> None:
    stage.write_to(sink)  # what takes ints takes bools


def read(source: Source[bool]) -> Source[int]:
    return source


def of_frame(df: DataFrame) -> Source[dict[str, Any]]:
    return p.read_spark(df)


assert_type(orders.pipe(larger, 2.0), Stage[Order])
assert_type(words.pipe(of_anything), Stage[str])


# Batches of rows
is_many: Any = ...  # an expression of pyarrow
schema = {"word": "string", "n": "int64"}
table = words.map(lambda word: (word, 1)).batches(schema)
files = pipe.read_from(p.read_batches("*.parquet", columns=["word", "n"]))
assert_type(table, BatchStage)
assert_type(files, BatchStage)
assert_type(files.map_batches(lambda frame: frame, "polars"), BatchStage)
assert_type(files.filter(is_many), BatchStage)
assert_type(files.select("word"), BatchStage)
assert_type(files.group_by("word"), BatchGrouped)
assert_type(files.group_by("word").aggregate(total=("n", "sum")), BatchStage)
assert_type(files.group_by("word").aggregate({"total": ("n", "sum")}), BatchStage)
assert_type(files.join(table, on="word", how="left"), BatchStage)
assert_type(files.join(table, left_on=["word"], right_on=["word"]), BatchStage)
assert_type(files.union(table), BatchStage)
assert_type(files.sort("word", descending=True), BatchStage)
assert_type(files.write_to(p.write_batches("out", partition_by="word")), None)
assert_type(files.rows(), Stage[dict[str, Any]])
assert_type(files.collect(), list[Any])


# Looking before and after
def looked_at(failed: JobFailed, on: Instance) -> None:
    assert_type(pipe.preview(5, on=on), Preview)
    assert_type(words.preview()["flat_map"].items, tuple[Any, ...])
    assert_type(words.preview()["flat_map"].per_item, float | None)
    assert_type(pipe.verify(5, on=on), Verification)
    assert_type(words.verify().findings[0].vertex, str)
    assert_type(failed.replay(debugger=True), list[Any])
