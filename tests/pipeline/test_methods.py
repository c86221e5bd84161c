"""Random chains of the methods of stages give what plain Python gives, here and on Spark."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite import Grouped, Instance, Pipeline, Stage
from tests.pipeline.light import Light, pool
from tests.pipeline.model import KEYS, STEPS, Case, Choice, Items, Record, same

__all__ = ["pool"]
pytestmark = pytest.mark.filterwarnings("ignore::pyrite.errors.PyriteWarning")  # keys of joins
MOST_ITEMS = 150

keys = st.sampled_from(
    [None, math.nan, 0, 1, 1.0, -0.0, "a", "", (1, "b"), (math.nan, None), Record(None, 2)]
)
records = st.lists(st.builds(Record, keys, st.integers(-3, 12)), max_size=12)
choices = st.builds(
    Choice,
    key=st.integers(0, len(KEYS) - 1),
    number=st.integers(0, 4),
    other=st.integers(0, 1),
    parallelism=st.sampled_from([None, 1, 3]),
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A chain whose joins do not make too many items."""
    case = Case((draw(records), draw(records)), [])
    state = Items(case.sources[0])
    for name, choice in draw(
        st.lists(st.tuples(st.sampled_from(list(STEPS)), choices), max_size=4)
    ):
        after = case.after(state, name, choice)
        if len(after.items) <= MOST_ITEMS:
            case.steps.append((name, choice))
            state = after
    return case


def pair(number: int, item: Record) -> tuple[int, Record]:
    return number, item


def counted(items: Iterable[Any]) -> Counter[Any]:
    return Counter(map(same, items))


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


def test_chains_give_what_plain_python_gives(pool: Instance) -> None:
    @settings(max_examples=100)
    @given(cases())
    def check(case: Case) -> None:
        got = case.stage(Pipeline()).collect(on=Light(pool))  # type: ignore[arg-type]
        expected = case.expected()
        if expected.in_order:
            assert list(map(same, got)) == list(map(same, expected.items))
        else:
            assert counted(got) == counted(expected.items)

    check()


def test_chains_give_on_spark_what_plain_python_gives(local_spark: Instance) -> None:
    """Several chains in each job, because a job on Spark takes long to start."""

    @settings(max_examples=2)
    @given(st.lists(cases(), min_size=6, max_size=6))
    def check(several: list[Case]) -> None:
        pipe = Pipeline()
        stages = [case.stage(pipe).map(partial(pair, i)) for i, case in enumerate(several)]
        got = stages[0].union(*stages[1:]).collect(on=local_spark)
        for number, case in enumerate(several):
            items = [item for of, item in got if of == number]
            assert counted(items) == counted(case.expected().items)

    check()


@pytest.mark.parametrize(
    "method",
    [
        name
        for cls in (Stage, Grouped)
        for name, _ in inspect.getmembers(cls, inspect.isroutine)
        if not name.startswith("_")
    ],
)
def test_every_method_is_in_a_chain(method: str) -> None:
    others = ("collect", "pipe", "preview", "verify", "write_to")  # these make no steps
    model = Path(__file__).with_name("model.py").read_text()
    assert method in others or f".{method}(" in model
