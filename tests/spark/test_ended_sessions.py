"""Sessions that were stopped or killed from outside: a sentence, no hang, and the next job runs."""

from __future__ import annotations

import pytest

from tests.spark.checking import what_held
from tests.spark.on_ended_session import CHECKS


@pytest.fixture(scope="module")
def said() -> str:
    return what_held("on_ended_session")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("check", [check.__name__ for check in CHECKS])
def test_a_session_that_ended(said: str, check: str) -> None:
    assert f"held: {check}\n" in said, said
