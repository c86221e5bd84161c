"""One Spark on this machine for all tests of this folder that do not need one of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pyrite
from pyrite import Instance


@pytest.fixture(scope="session")
def local_spark() -> Iterator[Instance]:
    conf = {"spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "2"}
    with pyrite.instance(spark_master="local[2, 4]", spark_conf=conf) as instance:
        yield instance


@pytest.fixture
def pyr(local_spark: Instance) -> Instance:
    for _, name, _ in local_spark.collections():
        local_spark.map(name).clear()
        local_spark.list(name).clear()
    return local_spark


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """The instance outlives each test here, and so may its threads."""
