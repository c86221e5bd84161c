"""All ways to run a pipeline, for tests that must give the same in each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, Execution, Instance, JobConfig, Pipeline, instance

PATIENCE = 60


class Mode:
    """Runs pipelines in one of the ways. `start` makes a job of a pipeline and executes it."""

    def __init__(self, pyr: Instance, start: Callable[[Pipeline | DAG], Execution]) -> None:
        self._pyr = pyr
        self._start = start

    def listed(self, pipe: Pipeline | DAG, *names: str) -> list[list[Any]]:
        """Runs a pipeline, and returns what it has written to these named lists."""
        for name in names:
            self._pyr.list(name).clear()
        self._start(pipe).result(PATIENCE)
        return [list(self._pyr.list(name)) for name in names]


@contextmanager
def light() -> Iterator[Mode]:
    with instance() as pyr:
        yield Mode(pyr, lambda pipe: pyr.new_light_job(pipe).execute())


@contextmanager
def members() -> Iterator[Mode]:
    with instance(members=2) as pyr:
        yield Mode(pyr, lambda pipe: pyr.new_light_job(pipe).execute())


@contextmanager
def durable(folder: Path) -> Iterator[Mode]:
    two = JobConfig(members=2)
    with instance(durable=folder, peers=2) as pyr:
        yield Mode(pyr, lambda pipe: pyr.new_durable_job(pipe, two).execute())


@pytest.fixture(scope="module", params=["light", "members", "spark", "durable"])
def mode(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mode]:
    if request.param == "spark":
        pyr: Instance = request.getfixturevalue("local_spark")
        yield Mode(pyr, lambda pipe: pyr.new_job(pipe).execute())
        return
    ways = {
        "light": light,
        "members": members,
        "durable": lambda: durable(tmp_path_factory.mktemp("durable")),
    }
    with ways[request.param]() as made:
        yield made
