"""Each contract test runs once for each kind of store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyrite.durable.store.store import Store
from tests.durable.store.places import Place


@pytest.fixture(params=["sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    place = Place(str(tmp_path / "folder"), session=0.2)
    yield place
    place.close()


@pytest.fixture
def store(place: Place) -> Store:
    return place.open()


@pytest.fixture
def other(place: Place) -> Store:
    """Another session."""
    return place.open()
