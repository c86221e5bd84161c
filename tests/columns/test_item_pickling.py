"""Batches of rows inside items cross exchanges as Arrow IPC; other items are pickled as before."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from pyrite.columns.packing import item_pickling
from pyrite.columns.packing.item_pickling import dumps, may_hold_batch

BATCH = pa.record_batch({"n": range(100_000)})


@dataclass(frozen=True)
class Held:
    what: Any


@pytest.fixture(autouse=True)
def knows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_pickling, "_packets_without", {})


@pytest.mark.parametrize(
    "wrap", [lambda b: ("key", b), lambda b: {"rows": [b]}, Held, lambda b: [("a", Held(b))]]
)
def test_a_slice_inside_an_item_is_small(wrap: Any) -> None:
    item = wrap(BATCH.slice(5, 10))
    packed = dumps([item, item], item)
    assert len(packed) < 2_000
    assert pickle.loads(packed) == [item, item]


def test_items_without_batches_are_pickled_plainly() -> None:
    items = [("a", 1), ("b", {"c": 2.5})]
    assert dumps(items, items[0]) == pickle.dumps(items, 5)


def test_a_class_without_batches_is_pickled_plainly_after_a_while() -> None:
    for _ in range(item_pickling.OFTEN_ENOUGH):
        assert may_hold_batch(("a", Held(1))) is Held
        dumps([Held(1)], ("a", Held(1)))
    assert may_hold_batch(Held(1)) is None


def test_a_class_that_held_a_batch_is_never_pickled_plainly() -> None:
    dumps([Held(BATCH)], Held(BATCH))
    for _ in range(item_pickling.OFTEN_ENOUGH):
        dumps([Held(1)], Held(1))
    assert may_hold_batch(Held(1)) is Held
