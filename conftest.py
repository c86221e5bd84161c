"""The code blocks of README.md and of docs/ are tests. Java starts fast for all tests, and none of
them records its runs at home."""

import os

import pytest
from tests.docs.blocks import PAGES
from tests.java import start_fast

start_fast()

pytest_collect_file = PAGES.pytest()


@pytest.fixture(scope="session", autouse=True)
def runs_are_not_recorded_at_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The commands that tests and pages start inherit it."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    os.environ.pop("PYRITE_RUNS", None)
