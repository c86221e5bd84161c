"""Whatever a user's function raises, the job fails, and the right vertex and item are named.

The loop of a fused chain is a generator if there is a flat map in it, and Python gives some
exceptions a meaning of their own inside generators and iterators: StopIteration ends them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pyrite import DAG, AbstractProcessor, Instance, JobFailed, Traverser, between, traverse
from pyrite import processors as p
from tests.engine.test_cancel_and_failure import works

ERRORS = [
    StopIteration,
    StopIteration("value"),
    GeneratorExit,
    KeyboardInterrupt,
    SystemExit,
    StopAsyncIteration,
    RuntimeError("generator raised StopIteration"),
]
BAD = 7


def raising(error: Any, result: Any = None) -> Any:
    """A function of one or two arguments that raises when the last of them is BAD."""

    def fn(*arguments: Any) -> Any:
        if arguments[-1] == BAD:
            raise error
        return arguments[-1] if result is None else result(arguments[-1])

    return fn


def iterator_that_raises(error: Any) -> Any:
    def fn(n: int) -> Iterator[int]:
        yield n
        if n == BAD:
            raise error

    return fn


class Raises(AbstractProcessor):
    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def try_process_0(self, item: Any) -> None:
        self.emit(self.fn(item))


class RaisesInFlatMapper(AbstractProcessor):
    def __init__(self, fn: Any) -> None:
        self.try_process_0 = self.flat_mapper(fn)  # type: ignore[method-assign]


class Steps(Traverser[int]):
    """A traverser of a user's making."""

    def __init__(self, n: int, error: Any) -> None:
        self.left = [n, n]
        self.error = error

    def next(self) -> int | None:
        if not self.left:
            return None
        n = self.left.pop()
        if n == BAD and len(self.left) == 0:
            raise self.error
        return n


def first(n: int) -> list[int]:
    return [n]


STEPS = {
    "map": lambda e: p.map(raising(e)),
    "filter": lambda e: p.filter(raising(e)),
    "flat_map": lambda e: p.flat_map(raising(e, first)),
    "accumulate": lambda e: p.accumulate(0, raising(e)),
    "collect": lambda e: p.collect(list, raising(e)),
    "key": lambda e: p.group_and_accumulate(raising(e), 0, lambda a, n: a + n),
    "group accumulate": lambda e: p.group_and_accumulate(lambda n: n, 0, raising(e)),
    "group collect": lambda e: p.group_and_collect(lambda n: n, list, raising(e)),
    "count_distinct": lambda e: p.count_distinct(raising(e)),
    "try_process": lambda e: lambda: Raises(raising(e)),
    "flat_mapper": lambda e: lambda: RaisesInFlatMapper(raising(e, first)),
}
ITERATORS = {
    "generator": lambda e: p.flat_map(iterator_that_raises(e)),
    "traverser map": lambda e: p.flat_map(lambda n: traverse([n]).map(raising(e))),
    "traverser filter": lambda e: p.flat_map(lambda n: traverse([n]).filter(raising(e))),
    "traverser flat_map": lambda e: p.flat_map(lambda n: traverse([n]).flat_map(raising(e, first))),
    "traverser take_while": lambda e: p.flat_map(lambda n: traverse([n]).take_while(raising(e))),
    "traverser class": lambda e: p.flat_map(lambda n: Steps(n, e)),
    "flat_mapper generator": lambda e: lambda: RaisesInFlatMapper(iterator_that_raises(e)),
    "flat_mapper traverser": lambda e: lambda: RaisesInFlatMapper(lambda n: Steps(n, e)),
}


def dag(supplier: Any, *, before: Any = None, apart: bool = False) -> DAG:
    """source -> before -> bad -> after; `apart` puts a processor between that cannot be fused."""
    dag = DAG()
    last = dag.vertex("source", p.read_items([1, 2, 3, BAD, 5]), local_parallelism=1)
    steps: list[tuple[str, Any]] = [("before", before)] if before is not None else []
    steps += [("bad", supplier), ("after", p.map(lambda n: n)), ("sink", p.write_list("out"))]
    for name, step in steps:
        if apart and name == "bad":
            gap = dag.vertex("gap", lambda: Raises(lambda n: n), local_parallelism=1)
            dag.edge(between(last, gap))
            last = gap
        vertex = dag.vertex(name, step, local_parallelism=1)
        dag.edge(between(last, vertex))
        last = vertex
    return dag


SHAPES: dict[str, dict[str, Any]] = {
    "alone": {"apart": True},
    "fused": {},
    "after a flat map": {"before": p.flat_map(lambda n: [n])},
    "after an iterator": {"before": p.flat_map(lambda n: iter([n]))},
}


def cause_of(failed: JobFailed, error: Any) -> bool:
    """Whether the job failed of this error, or of the RuntimeError that Python makes of a
    StopIteration in a generator of the user's."""
    cause = failed.__cause__
    kind = error if isinstance(error, type) else type(error)
    return isinstance(cause, kind) or isinstance(getattr(cause, "__cause__", None), kind)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("step", STEPS)
def test_what_a_function_raises_is_blamed_on_its_vertex_and_item(
    pyr: Instance, step: str, shape: str, error: Any
) -> None:
    with pytest.raises(JobFailed) as failed:
        pyr.new_light_job(dag(STEPS[step](error), **SHAPES[shape])).execute().result(10)
    assert (failed.value.vertex, failed.value.item) == ("bad", BAD)
    kind = error if isinstance(error, type) else type(error)
    assert type(failed.value.__cause__) is kind
    assert works(pyr)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("step", ITERATORS)
def test_what_an_iterator_raises_is_blamed_on_its_vertex_and_item(
    pyr: Instance, step: str, shape: str, error: Any
) -> None:
    with pytest.raises(JobFailed) as failed:
        pyr.new_light_job(dag(ITERATORS[step](error), **SHAPES[shape])).execute().result(10)
    assert (failed.value.vertex, failed.value.item) == ("bad", BAD)
    assert cause_of(failed.value, error)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("after_flat_map", [False, True])
def test_what_finish_raises_is_blamed_on_its_vertex_and_group(
    pyr: Instance, error: Any, after_flat_map: bool
) -> None:
    def finish(key: int, count: int) -> tuple[int, int]:
        if key == BAD:
            raise error
        return key, count

    before = p.flat_map(lambda n: [n, n]) if after_flat_map else None
    grouping = p.group_and_accumulate(lambda n: n, 0, lambda count, n: count + 1, finish)
    with pytest.raises(JobFailed) as failed:
        pyr.new_light_job(dag(grouping, before=before)).execute().result(10)
    assert (failed.value.vertex, failed.value.item) == ("bad", (BAD, 2 if after_flat_map else 1))


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("what", ["key", "partitioner"])
@pytest.mark.parametrize("after_flat_map", [False, True])
def test_what_a_key_function_of_an_edge_raises_is_blamed_on_the_edge_and_item(
    pyr: Instance, error: Any, parallelism: int, what: str, after_flat_map: bool
) -> None:
    dag = DAG()
    source = dag.vertex("source", p.read_items([1, 2, BAD]), local_parallelism=1)
    step = p.flat_map(lambda n: [n]) if after_flat_map else p.map(lambda n: n)
    sender = dag.vertex("sender", step, local_parallelism=1)
    taker = dag.vertex("taker", p.write_list("out"), local_parallelism=parallelism)
    edge = between(sender, taker)
    if what == "key":
        edge.partitioned(key=raising(error))
    else:
        fn = raising(error)
        edge.partitioned(partitioner=lambda key, count: fn(key) % count)
    with pytest.raises(JobFailed) as failed:
        pyr.new_light_job(dag.edge(between(source, sender)).edge(edge)).execute().result(10)
    found = failed.value
    assert (found.vertex, found.edge, found.item) == ("sender", "'sender -> taker'", BAD)


def test_a_source_whose_generator_raises_is_blamed_itself(pyr: Instance) -> None:
    def items() -> Iterator[int]:
        yield 1
        raise StopIteration

    line = DAG()
    source = line.vertex("source", p.read_items(items()))
    flat = line.vertex("flat", p.flat_map(lambda n: [n]))
    with pytest.raises(JobFailed) as failed:
        pyr.new_light_job(line.edge(between(source, flat))).execute().result(10)
    assert failed.value.vertex == "source"
