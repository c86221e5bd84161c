"""The options of read_files: types of CSV columns, columns, paths and encodings; and what is said
about a line that cannot be read."""

from __future__ import annotations

import pickle
import re
import tempfile
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite import Instance, InvalidDAG, JobFailed, ProcessorError
from pyrite import processors as p
from pyrite.processors.files import ReadFiles, csv_rows
from pyrite.processors.files.csv_rows import Csv
from pyrite.processors.files.lines import Range, ranges_of
from pyrite.processors.files.storage import LocalStorage
from tests.processors.files.jobs import copy, read_back

ZONES = st.sampled_from([UTC, timezone(timedelta(hours=-7, minutes=-30))])
VALUES: dict[type, st.SearchStrategy[Any]] = {
    int: st.integers(),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
    str: st.text(st.characters(codec="utf-8")),
    date: st.dates(),
    datetime: st.datetimes() | st.datetimes(timezones=ZONES),
    Decimal: st.decimals(allow_nan=False),
}
CP1252 = st.characters(codec="cp1252", exclude_characters="\r\n")
SCHEMA = {kind.__name__: kind for kind in VALUES}


def step_of(pattern: Path | str, **options: Any) -> ReadFiles:
    step = p.read_files(pattern, **options).step
    assert isinstance(step, ReadFiles)
    return step


def rows_of(path: Path | str, **options: Any) -> list[Any]:
    step = step_of(path, **options)
    return [item for block in step.blocks([Range(str(path))]) for item in block]


def bad_line(pyr: Instance, path: Path, **options: Any) -> str:
    """What a job says that cannot read a file."""
    with pytest.raises(JobFailed) as failed:
        copy(pyr, p.read_files(path, **options), p.write_list("out"))
    assert failed.value.vertex == "read"
    return str(failed.value)


@given(st.lists(st.fixed_dictionaries({kind.__name__: VALUES[kind] for kind in VALUES})))
def test_rows_of_every_type_are_read_back_as_they_were_written(rows: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        writer = Csv().writer(LocalStorage(), folder, "a.csv", "write")
        writer.write(rows)
        writer.complete()
        back = rows_of(f"{folder}/a.csv", format="csv", schema=SCHEMA)
    assert back == rows
    assert [list(map(type, row.values())) for row in back] == [list(VALUES)] * len(rows)


@given(st.data())
def test_an_empty_field_of_an_optional_type_is_none(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(list(VALUES)))
    value = VALUES[kind].filter(lambda value: value != "")
    values = data.draw(st.lists(st.none() | value, min_size=1))
    rows = [{"n": n, "value": value} for n, value in enumerate(values)]
    with tempfile.TemporaryDirectory() as folder:
        writer = Csv().writer(LocalStorage(), folder, "a.csv", "write")
        writer.write(rows)
        writer.complete()
        for optional in (kind | None, Optional[kind]):  # noqa: UP045 both ways are taken
            schema = {"n": int, "value": optional}
            assert rows_of(f"{folder}/a.csv", format="csv", schema=schema) == rows


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        (int, "1.5", "has '1.5', which is not an int"),
        (int, "1_000", "has '1_000', which is not an int"),
        (float, "1,5", "has '1,5', which is not a float"),
        (bool, "yes", "has 'yes', which is not a bool"),
        (date, "31.12.2024", "has '31.12.2024', which is not a date"),
        (date, "2024-01-01 10:00", "has '2024-01-01 10:00', which is not a date"),
        (datetime, "soon", "has 'soon', which is not a datetime"),
        (Decimal, "1_0", "has '1_0', which is not a Decimal"),
        (Decimal, "x", "has 'x', which is not a Decimal"),
        (int | None, "x", "has 'x', which is not an int"),
        (
            int,
            "",
            "is empty, which is not an int; give its type as int | None if it may be empty",
        ),
    ],
)
def test_a_field_that_does_not_fit_is_named_with_its_file_line_column_and_type(
    pyr: Instance, tmp_path: Path, kind: Any, text: str, problem: str
) -> None:
    path = tmp_path / "a.csv"
    good = {date: "2024-01-31", datetime: "2024-01-31T10:00Z", bool: "true"}.get(kind, "1")
    path.write_text(f'name,value\n"two\nlines",{good}\n\nx,"{text}"\n')
    said = bad_line(pyr, path, format="csv", schema={"name": str, "value": kind})
    assert f"line 5 of CSV file '{path}': column 'value' {problem}" in said


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"schema": {"a": int}}, "has column 'b', which schema does not name; add to schema, or"),
        ({"schema": {"a": int, "b": str, "c": str}}, "has no column 'c'; its columns are a, b"),
        ({"schema": {"x": int}}, "has columns 'a', 'b', which schema does not name; add to schema"),
        ({"columns": ["b", "d"]}, "has no column 'd'; its columns are a, b"),
        ({"columns": ["c", "d"]}, "has no columns 'c', 'd'; its columns are a, b"),
    ],
)
def test_columns_that_a_csv_file_lacks_or_has_too_many_are_named(
    pyr: Instance, tmp_path: Path, options: dict[str, Any], problem: str
) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    said = bad_line(pyr, tmp_path / "a.csv", format="csv", **options)
    assert f"CSV file '{tmp_path}/a.csv' {problem}" in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "text", "schema": {"a": int}}, "schema of read_files() is for csv, jsonl and"),
        ({"schema": {}}, "must be a dict of column names and their types, such as {'id': int"),
        ({"schema": {1: int}}, "the names in schema of read_files() must be strings; got 1"),
        (
            {"schema": {"a": list}},
            "gives column 'a' the type list, but a column can be int, float, bool, str, date, "
            "datetime or Decimal, or one of these | None",
        ),
        ({"schema": {"a": int | str | None}}, "the type int | str | None, but a column can"),
        ({"schema": {"a": int}, "columns": ["b"]}, "names 'b', which is not in schema"),
        (
            {"format": "text", "columns": ["a"]},
            "columns of read_files() is for csv, jsonl",
        ),
        ({"encoding": "latin-99"}, "must be a text encoding that Python knows, such as 'utf-8'"),
        ({"encoding": "rot13"}, "must be a text encoding that Python knows"),
        ({"format": "parquet", "encoding": "latin-1"}, "is for files of text, and format is 'par"),
        ({"with_path": "yes"}, "with_path of read_files() must be True or False; got 'yes'"),
    ],
)
def test_options_that_cannot_be_used_are_refused_at_once(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidDAG, match=re.escape(message)):
        p.read_files("x", **{"format": "csv", **options})


def test_only_the_columns_asked_for_are_read_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,c\n1,2,x\n")
    (tmp_path / "a.jsonl").write_text('{"a": 1, "b": [2]}\n{"c": 1}\n')
    schema = {"a": int, "c": str, "missing": int}
    read = rows_of(tmp_path / "a.csv", format="csv", columns=["c", "a"], schema=schema)
    assert [list(row.items()) for row in read] == [[("c", "x"), ("a", 1)]]
    assert rows_of(tmp_path / "a.csv", format="csv", columns=["b"]) == [{"b": "2"}]
    lines = rows_of(tmp_path / "a.jsonl", format="jsonl", columns=["b", "a"])
    assert lines == [{"b": [2], "a": 1}, {"b": None, "a": None}]


def test_a_json_line_without_columns_is_named(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n\n[1]\n')
    said = bad_line(pyr, tmp_path / "a.jsonl", format="jsonl", columns=["a"])
    assert f"line 3 of '{tmp_path}/a.jsonl' is not an object, so it has no columns: '[1]'" in said


def test_a_csv_file_without_a_header_has_no_rows_whatever_the_schema(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    assert rows_of(tmp_path / "a.csv", format="csv", schema={"a": int}) == []


@given(
    names=st.lists(st.sampled_from(["", "x", "a\nb", "a\r\n\rb"]), max_size=30),
    at_a_time=st.integers(1, 4),
)
def test_the_line_of_a_bad_field_is_right_whatever_is_above(
    names: list[str], at_a_time: int
) -> None:
    above = "name,n\n" + "".join(f'"{name}",1\n' if name else "\n" for name in names)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_rows, "_ROWS", at_a_time)
        path = Path(folder) / "a.csv"
        path.write_bytes(f'{above}"two\nlines",bad\n'.encode())
        line = 1 + len(re.findall("\r\n|\r|\n", above))
        with pytest.raises(ProcessorError, match=f"line {line} of CSV file .* has 'bad', which"):
            rows_of(path, format="csv", schema={"name": str, "n": int})


def test_empty_lines_above_a_csv_header_are_skipped_and_counted(
    pyr: Instance, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("\n\na\n1\nx\n")
    assert rows_of(tmp_path / "a.csv", format="csv") == [{"a": "1"}, {"a": "x"}]
    said = bad_line(pyr, tmp_path / "a.csv", format="csv", schema={"a": int})
    assert "line 5 of CSV file" in said


@pytest.mark.parametrize("format", ["text", "csv", "jsonl", "parquet"])
def test_items_come_with_the_paths_of_their_files(
    pyr: Instance, tmp_path: Path, format: str
) -> None:
    rows: list[Any] = ["1", "2"] if format == "text" else [{"a": "1"}, {"a": "2"}]
    copy(pyr, p.read_items(rows), p.write_files(tmp_path, format=format), parallelism=2)
    source = p.read_files(tmp_path / "*", format=format, with_path=True)
    copy(pyr, source, p.write_list("out"), readers=2)
    found = dict(pyr.list("out"))
    assert sorted(map(str, found.values())) == sorted(map(str, rows))
    assert set(found) == {str(path) for path in tmp_path.glob("part*")}


ENCODINGS = ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "shift_jis", "cp037", "utf-7"]


@pytest.mark.parametrize("format", ["text", "csv", "jsonl"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_files_of_other_encodings_are_read_by_any_number_of_readers(
    pyr: Instance, tmp_path: Path, format: str, encoding: str
) -> None:
    word = "\u3042" if encoding == "shift_jis" else "\u00e4"
    lines = [f'"{word} {n}"' for n in range(300)]
    text = "\r\n".join(["a", *lines] if format == "csv" else lines)
    (tmp_path / "a").write_bytes(text.encode(encoding))
    source = p.read_files(tmp_path / "a", format=format, encoding=encoding)
    copy(pyr, source, p.write_list("out"), readers=3)
    read = [f'"{item["a"]}"' if format == "csv" else item for item in pyr.list("out")]
    assert sorted(read) == sorted(lines if format != "jsonl" else [line[1:-1] for line in lines])


@pytest.mark.parametrize("format", ["text", "csv", "jsonl"])
@pytest.mark.parametrize(
    ("encoding", "bad", "problem"),
    [
        (None, b"\xff", "is not UTF-8 text: byte {} is 0xff (invalid start byte)"),
        ("ascii", b"\xe4", "is not ascii text: byte {} is 0xe4 (ordinal not in range(128))"),
        ("cp1252", b"\x81", "is not cp1252 text: byte {} is 0x81 (character maps to <undefined>)"),
    ],
)
def test_bytes_that_are_not_text_are_named_with_their_file_and_line(
    pyr: Instance, tmp_path: Path, format: str, encoding: str | None, bad: bytes, problem: str
) -> None:
    before = b'"x"\r\n' * 50_000
    (tmp_path / "a").write_bytes(before + b'"' + bad + b'"\n' + before)
    said = bad_line(pyr, tmp_path / "a", format=format, encoding=encoding)
    where = f"line 50001 of '{tmp_path}/a' {problem.format(len(before) + 1)}"
    assert f"{where}; give the encoding of the file with encoding=" in said


def test_half_a_character_at_the_end_of_a_file_is_named(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes("a\nb\n".encode("utf-16-le") + b"x")
    said = bad_line(pyr, tmp_path / "a", encoding="utf-16-le")
    assert f"line 3 of '{tmp_path}/a' is not utf-16-le text: byte 8 is 0x78 (truncated" in said


@pytest.mark.parametrize(
    ("format", "schema", "message"),
    [
        (
            "csv",
            {"a": str, "y": int},
            "the folder of '{}': column 'y' has 'x', which is not an int",
        ),
        ("jsonl", {"y": int}, "the folder of '{}': column 'y' has 'x', which is not an int"),
        ("jsonl", {"a": int}, "file '{}' is in no folder 'a=...', and schema of read_files()"),
        (
            "parquet",
            {"a": int},
            "file '{}' is in no folder 'a=...', and schema of read_files()",
        ),
    ],
)
def test_a_folder_that_does_not_fit_is_named(
    pyr: Instance, tmp_path: Path, format: str, schema: dict[str, Any], message: str
) -> None:
    sink = p.write_files(tmp_path / "y=x", format=format, single_file="file")
    copy(pyr, p.read_items([{"a": "1"}]), sink)
    path = tmp_path / "y=x" / "file"
    assert message.format(path) in bad_line(pyr, path, format=format, schema=schema)


def test_a_field_of_a_file_is_not_replaced_by_that_of_a_folder(
    pyr: Instance, tmp_path: Path
) -> None:
    for format in ("csv", "jsonl", "parquet"):
        sink = p.write_files(tmp_path / format / "y=x", format=format)
        copy(pyr, p.read_items([{"y": "z", "a": "1"}]), sink)
        assert read_back(pyr, tmp_path / format / "*" / "*", format) == [{"y": "z", "a": "1"}]


def test_columns_may_be_those_of_folders(pyr: Instance, tmp_path: Path) -> None:
    for format in ("csv", "jsonl", "parquet"):
        sink = p.write_files(tmp_path / format, format=format, partition_by=["x", "y"])
        copy(pyr, p.read_items([{"x": "1", "y": "2", "a": "3", "b": "4"}]), sink)
        for columns in (["y", "a"], ["y"], ["b"]):
            pattern = tmp_path / format / "**" / "part*"
            pyr.list("out").clear()
            source = p.read_files(pattern, format=format, columns=columns)
            copy(pyr, source, p.write_list("out"))
            values = {"y": "2", "a": "3", "b": "4"}
            assert [list(row.items()) for row in pyr.list("out")] == [
                [(name, values[name]) for name in columns]
            ]


def test_a_source_with_all_its_options_travels() -> None:
    options: dict[str, Any] = {"schema": SCHEMA | {"x": int | None}, "columns": ["x", "int"]}
    step = step_of("a", format="csv", with_path=True, encoding="latin-1", **options)
    assert pickle.loads(pickle.dumps(step)) == step


@given(
    st.lists(st.text(st.characters(codec="cp1252", exclude_characters="\r\n"))), st.integers(1, 5)
)
def test_each_line_of_another_encoding_is_read_once(lines: list[str], readers: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        path.write_bytes("".join(f"{line}\n" for line in lines).encode("cp1252"))
        step, sizes = step_of(path, encoding="cp1252"), [(str(path), path.stat().st_size)]
        parts = [part for index in range(readers) for part in ranges_of(sizes, index, readers)]
        assert [line for block in step.blocks(parts) for line in block] == lines


def test_a_reader_of_the_pattern_reads_back_zstd(pyr: Instance, tmp_path: Path) -> None:
    import pyarrow

    with pyarrow.output_stream(str(tmp_path / "a.txt.zst"), compression="zstd") as file:
        file.write(b"one\ntwo\n")
    assert read_back(pyr, tmp_path / "*", "text") == ["one", "two"]
    whole = (tmp_path / "a.txt.zst").read_bytes()
    (tmp_path / "a.txt.zst").write_bytes(whole[:-3])
    assert "a.txt.zst' cannot be read: Truncated" in bad_line(pyr, tmp_path / "a.txt.zst")
