"""TPC-H queries as pipelines give the answers of DuckDB, in every mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.tpch.answers import answer
from benchmarks.tpch.queries import QUERIES, is_special
from benchmarks.tpch.tables import write_tables

from tests.pipeline.modes import Mode, mode

__all__ = ["mode"]


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the instance is shared by several tests, so its threads stay."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpch")
    write_tables(folder, orders=3000)
    return folder


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_gives_the_answer_of_duckdb(mode: Mode, query: str, tables: Path) -> None:
    (rows,) = mode.listed(QUERIES[query](tables), query)
    expected = answer(query, tables)
    assert len(rows) == len(expected) > 3
    for row, as_expected in zip(rows, expected):
        assert row == tuple(map(_close, as_expected))


def _close(value: Any) -> Any:
    """Averages are floats, whose last digits depend on how they were divided; all else is exact."""
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value


def test_a_comment_is_special_if_the_two_words_come_in_this_order() -> None:
    comments = [
        "special requests",
        "a special x requests y",
        "requests special",
        "special",
        "specialrequests",
    ]
    assert [is_special(comment) for comment in comments] == [True, True, False, False, True]
