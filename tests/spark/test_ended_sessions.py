"""If a session is stopped or killed from outside, jobs fail with a clear error and do not hang, and
the next job runs."""

from __future__ import annotations

import pytest

from tests.spark.checking import what_held
from tests.spark.on_ended_session import CHECKS, LONG_CHECKS


@pytest.fixture(scope="module")
def said() -> str:
    return what_held("on_ended_session")


@pytest.fixture(scope="module")
def said_by_long_checks() -> str:
    return what_held("on_ended_session", "long")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("check", [check.__name__ for check in CHECKS])
def test_a_session_that_ended(said: str, check: str) -> None:
    assert f"held: {check}\n" in said, said


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("check", [check.__name__ for check in LONG_CHECKS])
def test_a_session_that_ended_or_never_began(said_by_long_checks: str, check: str) -> None:
    assert f"held: {check}\n" in said_by_long_checks, said_by_long_checks
