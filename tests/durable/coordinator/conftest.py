"""Each test of a leader runs once for each kind of store."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from pyrite.durable.store.opening import open_store
from pyrite.durable.store.store import Store

Opener = Callable[[], Callable[[], Store]]
"""Each call makes an empty store, and returns what opens a session of it."""


@pytest.fixture(params=["sqlite"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    numbers = count()

    def empty() -> Callable[[], Store]:
        place = tmp_path / str(next(numbers))
        return lambda: open_store(place)

    return empty
