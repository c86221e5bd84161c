"""Of the tests that are repeated for each Arrow type, `make test` runs every third, and `make soak`
the others."""

from __future__ import annotations

import pytest

REPEATED = (
    *("test_frames", "test_hashing", "test_ipc"),
    *("test_joining", "test_sorting", "test_splitting"),
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    numbers: dict[str, int] = {}
    for item in items:
        name, bracket, _ = item.nodeid.partition("[")
        if bracket and item.path.parent.name == "columns" and item.path.stem in REPEATED:
            number = numbers[name] = numbers.get(name, -1) + 1
            if number % 3:
                item.add_marker(pytest.mark.soak)
