"""Dead letters of several steps, with items of different types, in one sink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pyrite
from pyrite import Instance, InvalidDAG, Pipeline
from pyrite import processors as p
from tests.bad_records.light import run

COLUMNS = {"item": str, "vertex": str, "error": str, "traceback": str}


def pipe_to(sink: Any) -> Pipeline:
    """Bad items: a text, a dict, a float and one that JSON cannot express."""
    bad = pyrite.dead_letter(sink)
    pipe = Pipeline()
    words = pipe.read_from(["\ud800", "abc", "x", "ok"]).map(str, name="words")
    texts = words.map(lambda s: s.encode().decode(), name="text", on_error=bad)
    rows = texts.map(lambda s: {"n": len(s) % 3})
    numbers = rows.map(lambda r: 1 / r["n"], name="row", on_error=bad)
    sets = numbers.map(lambda n: {1 / (n - 1)}, name="number", on_error=bad)
    sets.map(lambda s: 1 / 0, name="set", on_error=bad).write_to(p.noop())
    return pipe


EXPECTED = {"text": "\\ud800", "row": '{"n": 0}', "number": "1.0", "set": "{-2.0}"}


def test_parquet_has_the_items_as_text(pyr: Instance, tmp_path: Path) -> None:
    run(pyr, pipe_to(p.write_files(tmp_path / "bad", format="parquet")))
    rows = Pipeline().read_from(p.read_files(tmp_path / "bad" / "*", format="parquet")).collect()
    assert {row["vertex"]: row["item"] for row in rows} == EXPECTED


def test_a_table_with_a_column_of_texts_has_the_items_as_text(
    pyr: Instance, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/bad.db"
    run(pyr, pipe_to(p.write_sql(url, "bad", create=COLUMNS)))
    rows = Pipeline().read_from(p.read_sql(url, "bad")).collect()
    assert {row["vertex"]: row["item"] for row in rows} == EXPECTED


def test_a_given_schema_decides_on_the_type_of_the_items(pyr: Instance, tmp_path: Path) -> None:
    schema = "item long, vertex string, error string, traceback string"
    bad = pyrite.dead_letter(p.write_files(tmp_path / "bad", format="parquet", schema=schema))
    pipe = Pipeline()
    pipe.read_from([1, 0]).map(lambda n: 1 // n, on_error=bad).write_to(p.noop())
    run(pyr, pipe)
    rows = Pipeline().read_from(p.read_files(tmp_path / "bad" / "*", format="parquet")).collect()
    assert [row["item"] for row in rows] == [0]


def test_a_map_is_refused_before_the_job_runs(pyr: Instance) -> None:
    with pytest.raises(InvalidDAG, match=r"dead letters to write_map\('bad'\), .* write_list"):
        run(pyr, pipe_to(p.write_map("bad")))
