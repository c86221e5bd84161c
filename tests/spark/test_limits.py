"""Jobs that reach a limit of Spark fail with a sentence that names it."""

from __future__ import annotations

import pytest

from tests.spark.checking import what_held
from tests.spark.on_limits import CHECKS


@pytest.fixture(scope="module")
def said() -> str:
    return what_held("on_limits")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("check", [check.__name__ for check in CHECKS])
def test_a_limit_that_is_reached_is_named(said: str, check: str) -> None:
    assert f"held: {check}\n" in said, said
