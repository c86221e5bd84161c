"""One Spark on this machine for all tests of this folder that do not need one of their own."""

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
    """The instance outlives each test here, and so may its threads."""
