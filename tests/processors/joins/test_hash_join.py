"""The processor of a join gives what plain Python gives, and holds one partition at a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.boxes import Inbox, Outbox
from pyrite.errors import ProcessorError
from pyrite.processors.groups.aggregates import Nothing
from pyrite.processors.joins.hash_join import HOWS, LEFT, RIGHT, HashJoin, How
from pyrite.testing import verify_processor

NAN = float("nan")
KEYS = st.sampled_from([1, "a", NAN, (1, NAN), Nothing.KEY])
SIDE = st.lists(st.tuples(KEYS, st.integers(0, 3)), max_size=6)


def same(item: object) -> object:
    return item


def matches(one: Any, other: Any) -> bool:
    return one is not Nothing.KEY and (one is other or one == other)


def by_hand(how: How, left: list[Any], right: list[Any]) -> list[Any]:
    found = [[v for k, v in right if matches(key, k)] for key, _ in left]
    if how in ("semi", "anti"):
        return [item for (_, item), some in zip(left, found) if bool(some) is (how == "semi")]
    alone = [] if how == "inner" else [None]
    pairs = [(item, match) for (_, item), some in zip(left, found) for match in some or alone]
    if how == "full":
        pairs += [(None, v) for k, v in right if not any(matches(k, key) for key, _ in left)]
    return pairs


@pytest.mark.filterwarnings("ignore:a join. the keys of the two sides have different types")
@pytest.mark.parametrize("how", HOWS)
def test_it_gives_what_plain_python_gives_however_it_is_called(how: How) -> None:
    @given(SIDE, SIDE)
    def check(left: list[Any], right: list[Any]) -> None:
        if how != "full":  # the step before drops these
            right = [pair for pair in right if pair[0] is not Nothing.KEY]
        expected = by_hand(how, left, right)
        join = HashJoin(how, same, same)
        verify_processor(join, {RIGHT: right, LEFT: left}, expected, any_order=True)

    check()


@pytest.mark.parametrize("how", HOWS)
def test_it_forgets_a_partition_that_has_ended(how: How) -> None:
    join = HashJoin(how, same, same)()
    join.attach(Outbox([100]))
    for partition in range(3):
        rows = [(f"{partition}-{n}", n) for n in range(5)]
        join.process(RIGHT, Inbox(rows))
        join.process(LEFT, Inbox(rows[:2]))
        assert len(list(join.save_snapshot())) <= 5 + 2  # and the two keys that have a match
        assert join.end_partition()
        assert not list(join.save_snapshot())
    assert len(join.outbox) == 3 * {"anti": 0, "full": 5}.get(how, 2)


def test_an_unhashable_key_is_named() -> None:
    bad: list[Any] = [([1], 1)]
    for sides in ({RIGHT: bad}, {RIGHT: [(1, 1)], LEFT: [(1, 2), *bad]}):
        with pytest.raises(ProcessorError, match=r"<function same.* must be hashable"):
            verify_processor(HashJoin("inner", same, same), sides, [])


def test_the_item_that_fails_is_named() -> None:
    class Unequal(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            raise ValueError("no")

    join = HashJoin("inner", same, same)()
    join.attach(Outbox([100]))
    join.process(RIGHT, Inbox([("a", 1)]))
    inbox = Inbox([("a", 1), (Unequal("a"), 2), ("a", 3)])
    with pytest.raises(ValueError, match="no"):
        join.process(LEFT, inbox)
    assert join.failed_at(inbox).item == 2
