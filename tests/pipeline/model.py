"""The methods of stages, each as a step of a pipeline and as plain Python, for random chains of
them. Items are records with a key of any kind: None, NaN, numbers, strings, tuples, records."""

from __future__ import annotations

import functools
import itertools
import math
import pickle
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyrite import AbstractProcessor, Pipeline, Stage, agg
from pyrite.processors.joins.hash_join import HOWS


@dataclass(frozen=True)
class Record:
    key: Any
    n: int


def same(key: Any) -> Any:
    """A value that is equal for equal keys: also for NaNs, which Python does not find equal."""
    if isinstance(key, Record):
        return same(key.key), key.n
    if isinstance(key, (tuple, list)):
        return tuple(map(same, key))
    return "NaN" if key != key else key


def rank(item: Record) -> tuple[int, str]:
    """An order of all records in which only equal ones are at the same place."""
    return item.n, shown(item.key)


def shown(key: Any) -> str:
    if isinstance(key, Record):
        return f"{shown(key.key)}: {key.n}"
    if isinstance(key, tuple):
        return f"({', '.join(map(shown, key))})"
    return repr(float(key) if isinstance(key, (int, float)) else key)


KEYS: list[Callable[[Record], Any]] = [
    lambda r: r.key,
    lambda r: r.n % 3,
    lambda r: r,
    lambda r: (r.key, r.n % 2),
    lambda r: None if r.n % 2 else r.key,
]


class Items(NamedTuple):
    """What the model says of a stage: its items, and whether they come in this order."""

    items: list[Record]
    in_order: bool = False


class Choice(NamedTuple):
    """The arguments of a step. `key` is one of KEYS, `other` says which stage is the other one of a
    join, and `parallelism` is that of the step."""

    key: int
    number: int
    other: int
    parallelism: int | None

    @property
    def key_of(self) -> Callable[[Record], Any]:
        return KEYS[self.key]

    @property
    def options(self) -> dict[str, Any]:
        return {} if self.parallelism is None else {"parallelism": self.parallelism}


Build = Callable[[Stage[Record], Stage[Record], Choice], Stage[Record]]
Model = Callable[[Items, list[Record], Choice], Iterable[Record]]


class Step(NamedTuple):
    """A method as a step of a pipeline, and as plain Python. Local steps keep the order."""

    build: Build
    model: Model
    is_local: bool = False
    makes_order: bool = False


STEPS: dict[str, Step] = {}


def step(name: str, model: Model, **properties: bool) -> Callable[[Build], Build]:
    def add(build: Build) -> Build:
        STEPS[name] = Step(build, model, **properties)
        return build

    return add


def more(item: Record) -> Record:
    return replace(item, n=item.n + 1)


def is_odd(item: Record) -> bool:
    return item.n % 2 == 1


def odd_only(item: Record) -> Record | None:
    return more(item) if is_odd(item) else None


def repeated(item: Record) -> list[Record]:
    return [item] * (item.n % 3)


async def more_later(item: Record) -> Record:
    return more(item)


def added(one: Record, two: Record) -> Record:
    return Record("sum", one.n + two.n)


# Steps that take one item at a time


@step("map", lambda s, o, c: map(more, s.items), is_local=True)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.map(more, **c.options)


@step("async map", lambda s, o, c: map(more, s.items), is_local=True)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.map(more_later, in_flight=2)


@step("map_with", lambda s, o, c: map(more, s.items), is_local=True)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.map_with(lambda: 1, lambda one, r: replace(r, n=r.n + one), **c.options)


@step("flat_map_with", lambda s, o, c: [r for r in s.items for _ in range(2)], is_local=True)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.flat_map_with(lambda: 2, lambda twice, r: [r] * twice, **c.options)


@step("filter", lambda s, o, c: filter(is_odd, s.items), is_local=True)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.filter(is_odd, **c.options)


@step("filter_map", lambda s, o, c: filter(None, map(odd_only, s.items)), is_local=True)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.filter_map(odd_only, **c.options)


@step("flat_map", lambda s, o, c: itertools.chain(*map(repeated, s.items)), is_local=True)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.flat_map(repeated, **c.options)


@step("inspect", lambda s, o, c: s.items, is_local=True)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.inspect(rank, **c.options)


@step("sample", lambda s, o, c: s.items if c.number % 2 else [], is_local=True)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.sample(c.number % 2, seed=c.number, **c.options)


@step("batch", lambda s, o, c: s.items)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    def whole(batch: list[Record]) -> list[Record]:
        assert 1 <= len(batch) <= c.number + 1
        return batch

    return s.batch(c.number + 1, **c.options).flat_map(whole)


@step("map_batches", lambda s, o, c: map(more, s.items))
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.map_batches(lambda batch: map(more, batch), size=c.number + 1, **c.options)


@step("batches", lambda s, o, c: s.items)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    rows = s.map(lambda item: (pickle.dumps(item),)).batches({"item": "binary"}, **c.options)
    return rows.rows().map(lambda row: pickle.loads(row["item"]))


# Steps with several stages, or that choose where items go


@step("split", lambda s, o, c: [more(r) if is_odd(r) else r for r in s.items])
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    odd, even = s.split(is_odd, **c.options)
    return odd.map(more).union(even)


@step("one branch", lambda s, o, c: filter(is_odd, s.items), is_local=True)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.split(is_odd, **c.options)[0]


@step("union", lambda s, o, c: s.items + o)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.union(o, **c.options)


@step("rebalance", lambda s, o, c: s.items)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.rebalance(c.key_of if c.number % 2 else None, **c.options)


class Twice(AbstractProcessor):
    def try_process_0(self, item: Any) -> None:
        self.emit(item)
        self.emit(item)


@step("process", lambda s, o, c: s.items * 2)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.process(Twice, edge=lambda edge: edge.distributed(), **c.options)


def joined(s: Items, other: list[Record], c: Choice, how: str) -> list[Record]:
    def keys(items: list[Record]) -> set[Any]:
        return {same(c.key_of(r)) for r in items if c.key_of(r) is not None}

    def alone(items: list[Record], others: list[Record]) -> list[Record]:
        return [r for r in items if same(c.key_of(r)) not in keys(others)]

    if how in ("semi", "anti"):
        without = alone(s.items, other)
        return without if how == "anti" else [r for r in s.items if r not in without]
    pairs: list[tuple[Record | None, Record | None]] = [
        (one, two)
        for one in s.items
        for two in other
        if c.key_of(one) is not None and same(c.key_of(one)) == same(c.key_of(two))
    ]
    if how in ("left", "full"):
        pairs += [(one, None) for one in alone(s.items, other)]
    if how == "full":
        pairs += [(None, two) for two in alone(other, s.items)]
    return [pair(each) for each in pairs]


def pair(sides: tuple[Record | None, Record | None]) -> Record:
    one, two = sides
    number = (one.n if one else 0) + (two.n if two else 0)
    return Record((one and one.key, two and two.key), number)


def add_join(how: Any, broadcast: bool) -> None:
    @step(
        f"join, {how}{', broadcast' if broadcast else ''}",
        lambda s, o, c: joined(s, o, c, how),
    )
    def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
        made: Stage[Any] = s.join(
            o, left=c.key_of, right=c.key_of, how=how, broadcast=broadcast, **c.options
        )
        return made if how in ("semi", "anti") else made.map(pair)


for how in HOWS:
    add_join(how, broadcast=False)
    if how != "full":
        add_join(how, broadcast=True)


def groups(items: Iterable[Record], key: Callable[[Record], Any]) -> list[tuple[Any, list[Record]]]:
    found: dict[Any, tuple[Any, list[Record]]] = {}
    for item in items:
        found.setdefault(same(key(item)), (key(item), []))[1].append(item)
    return list(found.values())


def co_grouped(s: Items, o: list[Record], c: Choice) -> Iterable[Record]:
    sides = defaultdict[Any, list[Any]](lambda: [None, 0, 0])
    for number, items in enumerate((s.items, o)):
        for item in items:
            side = sides[same(c.key_of(item))]
            side[0] = c.key_of(item)
            side[1 + number] += 1
    return [Record(key, 100 * left + right) for key, left, right in sides.values()]


@step("co_group", co_grouped)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    sides = s.co_group(o, left=c.key_of, right=c.key_of, **c.options)
    return sides.map(lambda t: Record(t[0], 100 * len(t[1]) + len(t[2])))


# Steps that need all items


def of_all(items: Sequence[Record]) -> tuple[Any, ...]:
    """What the aggregates below give, in plain Python."""
    numbers = [item.n for item in items]
    in_order = sorted(items, key=rank)
    return (
        len(items),
        sum(numbers),
        statistics.mean(numbers) if numbers else math.nan,
        statistics.stdev(numbers) if len(numbers) > 1 else math.nan,
        min(numbers, default=None),
        max(numbers, default=None),
        in_order[::-1][:2],
        in_order[:2],
        "some" if items else None,
        sorted(numbers),
    )


def of_all_too(items: Sequence[Record]) -> tuple[Any, ...]:
    return (
        {item.n % 5 for item in items},
        {item.n: str(item.n) for item in items},
        len({same(item.key) for item in items}),
        functools.reduce(added, items) if items else None,
        len(items),
    )


AGGREGATES: tuple[Any, ...] = (
    agg.count(),
    agg.sum(lambda r: r.n),
    agg.mean(lambda r: r.n),
    agg.std(lambda r: r.n),
    agg.min(lambda r: r.n),
    agg.max(lambda r: r.n),
    agg.top(2, key=rank),
    agg.bottom(2, key=rank),
    agg.first(lambda r: "some"),
    agg.to_list(lambda r: r.n),
)
MORE_AGGREGATES: tuple[Any, ...] = (
    agg.to_set(lambda r: r.n % 5),
    agg.to_dict(lambda r: r.n, lambda r: str(r.n)),
    agg.count_distinct(lambda r: r.key),
    agg.reduce(added),
    agg.Aggregate(lambda: 0, lambda n, r: n + 1, lambda m, n: m + n),
)


def as_record(result: tuple[Any, ...]) -> Record:
    """A record of the results of aggregates, the same for equal ones."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return tuple(sorted(value.items()))
        if isinstance(value, (list, set)):
            return tuple(
                value
                if value and isinstance(value, list) and isinstance(value[0], Record)
                else sorted(value)
            )
        return round(value, 6) if isinstance(value, float) else value

    return Record(tuple(map(plain, result)), 1)


@step("aggregate", lambda s, o, c: [as_record(of_all(s.items))])
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    results: Stage[Any] = s.aggregate(*AGGREGATES, **c.options)
    return results.map(as_record)


@step("aggregate more", lambda s, o, c: [as_record(of_all_too(s.items))])
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    results: Stage[Any] = s.aggregate(*MORE_AGGREGATES, **c.options)
    return results.map(as_record)


@step("count", lambda s, o, c: [Record("count", len(s.items))])
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.count(**c.options).map(lambda n: Record("count", n))


@step("reduce", lambda s, o, c: [functools.reduce(added, s.items)] if s.items else [])
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.reduce(added, **c.options)


@step("distinct", lambda s, o, c: {same(r): r for r in s.items}.values())
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.distinct(**c.options)


@step("distinct by", lambda s, o, c: [Record(key, 1) for key, _ in groups(s.items, c.key_of)])
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    key_of = c.key_of
    return s.distinct(key_of, **c.options).map(lambda r: Record(key_of(r), 1))


@step("top", lambda s, o, c: sorted(s.items, key=rank)[::-1][: c.number], makes_order=True)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.top(c.number, key=rank, **c.options)


@step("sort", lambda s, o, c: sorted(s.items, key=rank, reverse=c.number == 2), makes_order=True)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.sort(key=rank, reverse=c.number == 2, **c.options)


def limited(s: Items, o: list[Record], c: Choice) -> list[Record]:
    return [Record("some", 1)] * min(c.number, len(s.items))


@step("limit", limited)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.limit(c.number, **c.options).map(lambda r: Record("some", 1))


@step("sort and limit", lambda s, o, c: sorted(s.items, key=rank)[: c.number], makes_order=True)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.sort(key=rank, **c.options).limit(c.number, **c.options)


# Groups


def of_groups(fn: Callable[[list[Record]], Any]) -> Model:
    return lambda s, o, c: [
        Record((key, as_record((fn(items),)).key), 1) for key, items in groups(s.items, c.key_of)
    ]


def key_and_rest(result: tuple[Any, ...]) -> Record:
    return Record((result[0], as_record(result[1:]).key), 1)


@step("group and count", lambda s, o, c: [Record(k, len(v)) for k, v in groups(s.items, c.key_of)])
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.group_by(c.key_of).count(**c.options).map(lambda t: Record(*t))


@step("group and reduce", of_groups(lambda items: functools.reduce(added, items)))
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.group_by(c.key_of).reduce(added, **c.options).map(key_and_rest)


@step("group and top", of_groups(lambda items: sorted(items, key=rank)[::-1][:2]))
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    return s.group_by(c.key_of).top(2, key=rank, **c.options).map(key_and_rest)


@step("map_values", of_groups(lambda items: sum(2 * item.n for item in items)))
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    doubled = s.group_by(c.key_of).map_values(lambda r: r.n).map_values(lambda n: n * 2)
    return doubled.aggregate(agg.sum(), **c.options).map(key_and_rest)


@step(
    "map_groups",
    lambda s, o, c: [Record(k, r.n) for k, v in groups(s.items, c.key_of) for r in v],
)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    grouped = s.group_by(c.key_of)
    return grouped.map_groups(lambda k, v: [Record(k, r.n) for r in v], **c.options)


@step(
    "group and aggregate",
    lambda s, o, c: [key_and_rest((k, *of_all(v))) for k, v in groups(s.items, c.key_of)],
)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    results: Stage[Any] = s.group_by(c.key_of).aggregate(*AGGREGATES, **c.options)
    return results.map(key_and_rest)


@step(
    "group and aggregate more",
    lambda s, o, c: [key_and_rest((k, *of_all_too(v))) for k, v in groups(s.items, c.key_of)],
)
def _(s: Stage[Record], o: Stage[Record], c: Choice) -> Stage[Record]:
    results: Stage[Any] = s.group_by(c.key_of).aggregate(*MORE_AGGREGATES, **c.options)
    return results.map(key_and_rest)


# Chains


class Case(NamedTuple):
    """Two sources, and the steps that follow the first."""

    sources: tuple[list[Record], list[Record]]
    steps: list[tuple[str, Choice]]

    def expected(self) -> Items:
        state = Items(self.sources[0])
        for name, choice in self.steps:
            state = self.after(state, name, choice)
        return state

    def after(self, state: Items, name: str, choice: Choice) -> Items:
        step = STEPS[name]
        other = state.items if choice.other else self.sources[1]
        in_order = step.makes_order or (step.is_local and state.in_order)
        return Items(list(step.model(state, other, choice)), in_order)

    def stage(self, pipe: Pipeline) -> Stage[Record]:
        first, second = (pipe.read_from(source) for source in self.sources)
        stage = first
        for name, choice in self.steps:
            stage = STEPS[name].build(stage, stage if choice.other else second, choice)
        return stage
