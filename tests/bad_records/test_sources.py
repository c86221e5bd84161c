"""Lines of files that cannot be read, as bad records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyrite
from pyrite import Instance, JobConfig, JobFailed, Pipeline
from pyrite import processors as p
from pyrite.bad_records import BadRecord
from pyrite.collections import MemoryCollections
from pyrite.context import ProcessorContext
from pyrite.processors.files.csv_rows import Csv
from pyrite.processors.files.json_lines import JsonLines
from pyrite.processors.files.lines import pieces_of
from pyrite.processors.files.storage import storage_of
from tests.bad_records.light import bad_list, letters, run

JSON = '{"n": 1}\nnot json\n\n{"n": 2}\nnull\n{"n": 3}\n'
CSV = 'n,word\n1,a\nx,b\n2\n\n3,"two\nlines"\n4,"bro"ken\n5,c\n'


def pipe_of(source: Any, on_error: Any) -> Pipeline:
    pipe = Pipeline()
    pipe.read_from(source, name="read", on_error=on_error).write_to(p.write_list("out"))
    return pipe


def test_a_line_that_is_no_json_is_a_bad_record(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(JSON)
    pipe = pipe_of(p.read_files(tmp_path / "*.jsonl", format="jsonl"), bad_list())
    counts = run(pyr, pipe)["read"]
    assert list(pyr.list("out")) == [{"n": 1}, {"n": 2}, {"n": 3}]
    broken, null = letters(pyr)
    path = str(tmp_path / "a.jsonl")
    assert broken.item == {"path": path, "line": 2, "text": "not json"}
    assert broken.error.startswith(f"ProcessorError: line 2 of '{path}' is not JSON: ")
    assert null.item == {"path": path, "line": 5, "text": "null"}
    assert (counts["received"], counts["emitted"], counts["dead_letters"]) == (0, 3, 2)


def test_rows_that_do_not_fit_are_bad_records(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    schema = {"n": int, "word": str}
    pipe = pipe_of(p.read_files(tmp_path / "a.csv", format="csv", schema=schema), bad_list())
    run(pyr, pipe)
    assert list(pyr.list("out")) == [
        {"n": 1, "word": "a"},
        {"n": 3, "word": "two\nlines"},
        {"n": 5, "word": "c"},
    ]
    found = {letter.item["line"]: letter for letter in letters(pyr)}
    assert [found[line].item["text"] for line in sorted(found)] == ["x,b", "2", '4,"bro"ken']
    assert sorted(found) == [3, 4, 8]
    assert "column 'n' has 'x', which is not an int" in found[3].error
    assert "has 1 fields, but its header has 2" in found[4].error
    assert "cannot be read" in found[8].error


@pytest.mark.parametrize("format", ["text", "jsonl", "csv"])
def test_bytes_that_are_not_text_are_a_bad_record(
    pyr: Instance, tmp_path: Path, format: str
) -> None:
    (tmp_path / "a").write_bytes(b'"e"\n"caf\xe9"\n"b"\n')
    pipe = pipe_of(p.read_files(tmp_path / "a", format=format), bad_list())
    run(pyr, pipe)
    assert len(pyr.list("out")) == (1 if format == "csv" else 2)
    (letter,) = letters(pyr)
    assert letter.item["line"] == 2
    assert "caf\\xe9" in letter.item["text"]
    assert "is not UTF-8 text" in letter.error


def test_with_paths(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("1\nx\n")
    source = p.read_files(tmp_path / "a.jsonl", format="jsonl", with_path=True)
    run(pyr, pipe_of(source, pyrite.skip()))
    assert list(pyr.list("out")) == [(str(tmp_path / "a.jsonl"), 1)]


def test_a_share_of_bad_lines_is_a_share_of_all_lines(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("1\nx\n2\n3\n")
    source = p.read_files(tmp_path / "a.jsonl", format="jsonl")
    run(pyr, pipe_of(source, pyrite.skip(at_most=0.25)))
    with pytest.raises(JobFailed, match=r"'read' could not process 1 of 4 items.*without on_error"):
        run(pyr, pipe_of(source, pyrite.skip(at_most=0.24)))


def test_a_file_without_a_header_still_fails(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('"bro"ken\n')
    with pytest.raises(JobFailed, match="line 1 of CSV file"):
        run(pyr, pipe_of(p.read_files(tmp_path / "a.csv", format="csv"), pyrite.skip()))


def test_the_files_of_a_durable_job(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(JSON)
    bad = pyrite.dead_letter(p.write_list("bad"), at_most=2)
    pipe = pipe_of(p.read_files(tmp_path / "a.jsonl", format="jsonl"), bad)
    with pyrite.instance(durable=tmp_path / "jobs", peers=1) as pyr:
        execution = pyr.new_durable_job(pipe, JobConfig(members=1)).execute()
        execution.result(60)
        assert [value["n"] for value in pyr.list("out")] == [1, 2, 3]
        assert [letter.item["line"] for letter in letters(pyr)] == [2, 5]
        counts = execution.metrics()["read"]
        assert (counts["received"], counts["emitted"], counts["dead_letters"]) == (0, 3, 2)


LINES = st.lists(
    st.one_of(
        st.integers().map(str), st.sampled_from(["", "x", "null", "{", '"a"', "[1", " 7 ", "é"])
    ),
    max_size=12,
)


@given(lines=LINES, most=st.integers(1, 20))
def test_each_line_is_good_or_bad_and_has_its_number(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], most: int
) -> None:
    """Whatever ranges a file is read in."""
    path = tmp_path_factory.getbasetemp() / "lines.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    storage, size = storage_of(str(path)), path.stat().st_size
    pieces = pieces_of(str(path), size, most) if size else []
    format = JsonLines().going_on()
    found = [item for piece in pieces for block in format.read(storage, piece) for item in block]
    good: list[Any] = []
    bad: list[int] = []
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line) if line else ""
        except ValueError:
            value = None
        if value is None:
            bad.append(number)
        elif line:
            good.append(value)
    assert [item for item in found if type(item) is not BadRecord] == good
    assert [item.item["line"] for item in found if type(item) is BadRecord] == bad


@given(rows=st.lists(st.sampled_from(["1,a", "x,a", "1", "", '2,"b\nc"', '3,"d"e', "4,f,g"])))
def test_each_row_is_good_or_bad_and_has_its_line(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    path.write_text("".join(f"{row}\n" for row in ["n,w", *rows]))
    typed = p.read_files(path, format="csv", schema={"n": int, "w": str}).step
    assert isinstance(typed.going_on().format, Csv)  # type: ignore[attr-defined]
    found = list(typed.going_on().open(_context()))
    line, bad = 2, []
    for row in rows:
        if row in ("x,a", "1", '3,"d"e', "4,f,g"):
            bad.append(line)
        line += 1 + row.count("\n")
    assert sorted(item.item["line"] for item in found if type(item) is BadRecord) == bad
    good = [int(row[0]) for row in rows if row in ("1,a", '2,"b\nc"')]
    assert [item["n"] for item in found if type(item) is not BadRecord] == good


def _context() -> Any:
    return ProcessorContext(
        vertex_name="read",
        local_parallelism=1,
        member_count=1,
        job_id="",
        execution_id="",
        collections=MemoryCollections(),
        member_index=0,
        local_index=0,
    )


def test_a_quote_that_is_not_closed_costs_one_line(pyr: Instance, tmp_path: Path) -> None:
    text = 'id,name\n1,a\n2,"open\n3,b\n4,"c"\n5,d\n6,"two\nlines"\n7,"open again\n8,e\n'
    (tmp_path / "in.csv").write_text(text)
    pipe = Pipeline()
    rows = pipe.read_from(p.read_files(tmp_path / "in.csv", format="csv"), on_error=bad_list())
    rows.map(lambda row: row["id"]).write_to(p.write_list("out"))
    run(pyr, pipe)
    assert sorted(pyr.list("out")) == ["1", "3", "4", "5", "6", "8"]
    items = [(letter.item["line"], letter.item["text"]) for letter in letters(pyr)]
    assert items == [(3, '2,"open'), (9, '7,"open again')]


@pytest.mark.parametrize("sinks", [1, 2, 3])
def test_a_share_does_not_depend_on_how_often_the_source_is_used(
    pyr: Instance, tmp_path: Path, sinks: int
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\nx\n{"a": 2}\ny\n')
    pipe = Pipeline()
    rows = pipe.read_from(p.read_files(path, format="jsonl"), on_error=pyrite.skip(at_most=0.4))
    for _ in range(sinks):
        rows.write_to(p.noop())
    with pytest.raises(JobFailed, match="could not process 2 of 4 items"):
        run(pyr, pipe)
