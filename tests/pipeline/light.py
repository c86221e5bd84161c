"""An instance that tests share, and one whose normal jobs are light jobs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pyrite import Instance, instance


@pytest.fixture(scope="module", params=[1, 3], ids=lambda size: f"pool of {size}")
def pool(request: pytest.FixtureRequest) -> Iterator[Instance]:
    with instance(cooperative_threads=request.param) as pyr:
        yield pyr


class Light:
    """Stands for an instance in `collect(on=...)`, which runs normal jobs."""

    def __init__(self, pyr: Instance) -> None:
        self.new_job, self.list = pyr.new_light_job, pyr.list
