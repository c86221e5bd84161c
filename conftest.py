"""The code blocks of README.md and of docs/ are tests."""

from tests.docs.blocks import PAGES

pytest_collect_file = PAGES.pytest()
