"""One local Spark session for all tests of this folder that do not need their own."""

from __future__ import annotations

import pytest

from pyrite import Instance


@pytest.fixture
def pyr(local_spark: Instance) -> Instance:
    for _, name, _ in local_spark.collections():
        local_spark.map(name).clear()
        local_spark.list(name).clear()
    return local_spark


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""
