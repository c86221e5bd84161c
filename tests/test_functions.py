"""Functions are described with file and line, and compared by their code."""

from __future__ import annotations

import functools
import time
from typing import Any

import cloudpickle
import pytest

from pyrite.functions import describe, same, shorten


def test_functions_methods_and_partials_are_named_with_their_line() -> None:
    class Thing:
        def method(self) -> None:
            pass

    assert describe(lambda: 0).startswith("<function test_functions_methods")
    assert "test_functions.py line" in describe(Thing().method)
    assert describe(functools.partial(describe, 3)).startswith(
        "<function describe, functions.py line"
    )
    assert describe(Thing).startswith("<class tests.test_functions.")
    assert "test_functions.py line" in describe(functools.lru_cache(lambda n: n))
    assert " at 0x" not in describe(Thing())


def test_shortening_never_raises() -> None:
    class Bad:
        def __repr__(self) -> str:
            raise ValueError

    assert shorten(Bad()) == "<Bad whose repr raised ValueError>"
    assert len(shorten("x" * 500)) == 120


@pytest.mark.parametrize("value", ["ab" * 99, b"ab" * 99, [1] * 99, ("ab" * 99, [b"x" * 99]), [[]]])
def test_a_shortened_value_is_the_start_of_its_repr(value: object) -> None:
    assert shorten(value, 99).removesuffix("…") == repr(value)[:98]


def test_shortening_a_large_value_takes_no_time() -> None:
    started = time.process_time()
    shorten([("key", bytes(100_000_000))])
    assert time.process_time() - started < 0.1


def adder(n: int) -> Any:
    return lambda x: x + n


def test_closures_and_defaults_count() -> None:
    assert same(adder(1), adder(1))
    assert not same(adder(1), adder(2))
    assert not same(adder(1), adder(True))
    assert not same(lambda x, y=1: x, lambda x, y=2: x)


def test_a_function_is_the_same_after_a_pickle() -> None:
    def recursive(n: int) -> int:
        return n and recursive(n - 1)

    for function in (adder(3), recursive, lambda w: w.lower().split()):
        assert same(function, cloudpickle.loads(cloudpickle.dumps(function)))


def test_constants_of_another_type_are_another_function() -> None:
    assert not same(lambda: (1, 2), lambda: (1, True))
    assert not same(lambda: 1, lambda: 1.0)
