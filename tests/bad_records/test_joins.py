"""Keys that a join or a co-group cannot take, with on_error."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

import pyrite
from pyrite import Pipeline


def listed_if_odd(n: int) -> Any:
    """A key that is not hashable for odd numbers."""
    return [n] if n % 2 else n


@pytest.mark.parametrize("how", ["inner", "left", "semi", "anti"])
def test_a_broadcast_join_takes_all_keys_that_it_takes_without_on_error(how: Any) -> None:
    def joined(**options: Any) -> list[Any]:
        pipe = Pipeline()
        hits, allowed = pipe.read_from(["1.1.1.1", "2.2.2.2"]), pipe.read_from(["2.2.2.2"])
        ip = ipaddress.ip_address
        return hits.join(allowed, left=ip, right=ip, how=how, broadcast=True, **options).collect()

    assert sorted(joined(on_error=pyrite.skip())) == sorted(joined()) != []


@pytest.mark.parametrize("broadcast", [True, False])
def test_an_item_whose_key_is_not_hashable_is_left_out_of_a_join(broadcast: bool) -> None:
    pipe = Pipeline()
    left, right = pipe.read_from(range(4)), pipe.read_from(range(4))
    joined = left.join(
        right, left=listed_if_odd, right=abs, broadcast=broadcast, on_error=pyrite.skip()
    )
    assert sorted(joined.collect()) == [(0, 0), (2, 2)]


def test_an_item_whose_key_is_not_hashable_is_left_out_of_a_co_group() -> None:
    pipe = Pipeline()
    left, right = pipe.read_from(range(3)), pipe.read_from(range(3))
    groups = left.co_group(right, left=abs, right=listed_if_odd, on_error=pyrite.skip())
    assert sorted(groups.collect()) == [(0, [0], [0]), (1, [1], []), (2, [2], [2])]


def test_a_key_that_cannot_be_partitioned_is_left_out_of_a_partitioned_join() -> None:
    pipe = Pipeline()
    left, right = pipe.read_from([1, 2]), pipe.read_from([1, 2])
    joined = left.join(
        right, left=lambda n: n if n > 1 else object(), right=abs, on_error=pyrite.skip()
    )
    assert joined.collect() == [(2, 2)]
