"""What mypy infers for each stage. `test_types.py` compares it with the comments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import reveal_type

from pyrite import Pipeline, Stage, agg


@dataclass
class Order:
    customer: str
    total: float


pipe = Pipeline()
orders = pipe.read_from([Order("a", 1.0)])
words = pipe.read_from(["a b"]).flat_map(str.split)
grouped = orders.group_by(lambda o: o.customer)


def larger(stage: Stage[Order], than: float) -> Stage[Order]:
    return stage.filter(lambda o: o.total > than)


reveal_type(orders)  # Stage[Order]
reveal_type(words)  # Stage[str]
reveal_type(orders.map(lambda o: o.total))  # Stage[float]
reveal_type(orders.filter(lambda o: o.total > 0))  # Stage[Order]
reveal_type(orders.filter_map(lambda o: o.customer if o.total else None))  # Stage[str]
reveal_type(orders.flat_map(lambda o: [o.total]))  # Stage[float]
reveal_type(orders.inspect(print))  # Stage[Order]
reveal_type(orders.pipe(larger, 2.0))  # Stage[Order]
reveal_type(words.union(words))  # Stage[str]
reveal_type(words.union(orders))  # Stage[str | Order]
reveal_type(words.rebalance(len))  # Stage[str]
reveal_type(words.distinct())  # Stage[str]
reveal_type(words.count())  # Stage[int]
reveal_type(words.reduce(lambda a, b: a + b))  # Stage[str]
reveal_type(words.top(3, key=lambda w: w.upper()))  # Stage[str]
reveal_type(words.sort(key=lambda w: w.upper()))  # Stage[str]
reveal_type(words.limit(3))  # Stage[str]
reveal_type(words.collect())  # list[str]
reveal_type(grouped)  # Grouped[str, Order]
reveal_type(grouped.count())  # Stage[tuple[str, int]]
reveal_type(grouped.reduce(lambda a, b: a))  # Stage[tuple[str, Order]]
reveal_type(grouped.top(2, key=lambda o: o.total))  # Stage[tuple[str, list[Order]]]
reveal_type(grouped.map_values(lambda o: o.total))  # Grouped[str, float]
reveal_type(grouped.map_groups(lambda k, items: [(k, len(items))]))  # Stage[tuple[str, int]]
reveal_type(grouped.aggregate(agg.count()))  # Stage[tuple[str, int]]
reveal_type(grouped.aggregate(agg.sum(lambda o: o.total)))  # Stage[tuple[str, float]]
both = grouped.aggregate(agg.count(), agg.sum(lambda o: o.total))
reveal_type(both)  # Stage[tuple[str, int, float]]
reveal_type(orders.aggregate(agg.count()))  # Stage[int]
reveal_type(orders.aggregate(agg.max(lambda o: o.total)))  # Stage[float]
reveal_type(orders.aggregate(agg.count(), agg.mean(lambda o: o.total)))  # Stage[tuple[int, float]]
reveal_type(words.aggregate(agg.min()))  # Stage[str]
reveal_type(words.aggregate(agg.to_list(), agg.to_set()))  # Stage[tuple[list[str], set[str]]]
reveal_type(words.aggregate(agg.top(2)))  # Stage[list[str]]
reveal_type(words.aggregate(agg.to_dict(lambda w: w, len)))  # Stage[dict[str, int]]
reveal_type(words.split(str.isupper))  # tuple[Stage[str], Stage[str]]
reveal_type(words.batch(2))  # Stage[list[str]]
reveal_type(words.map_batches(lambda b: [len(b)]))  # Stage[int]
reveal_type(words.sample(0.5))  # Stage[str]
inner = orders.join(words, left=lambda o: o.customer, right=lambda w: w.upper())
reveal_type(inner)  # Stage[tuple[Order, str]]
left = orders.join(words, left=lambda o: o.customer, right=str.upper, how="left")
reveal_type(left)  # Stage[tuple[Order, str | None]]
full = orders.join(words, left=lambda o: o.customer, right=str.upper, how="full")
reveal_type(full)  # Stage[tuple[Order | None, str | None]]
semi = orders.join(words, left=lambda o: o.customer, right=str.upper, how="semi")
reveal_type(semi)  # Stage[Order]
sides = orders.co_group(words, left=lambda o: o.customer, right=lambda w: w)
reveal_type(sides)  # Stage[tuple[str, list[Order], list[str]]]
