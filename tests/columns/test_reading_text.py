"""read_batches of CSV files and JSON lines: types, empty files, and lines that do not fit."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pyrite import DAG, Instance, InvalidDAG, between, dead_letter
from pyrite import processors as p
from pyrite.processors.columns.sources import csv_blocks, json_blocks
from tests.columns.test_reading import batches, fails, table


def rows(glob: Path | str, **options: Any) -> list[dict[str, Any]]:
    return [row for batch in batches(glob, **options) for row in batch.to_pylist()]


def test_types_of_csv_columns_are_inferred(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,name,x,day\n1,"a\nb",0.5,2024-02-29\n2,,nan,\n')
    read = table(tmp_path / "a.csv", format="csv")
    assert read.schema.types == [pa.int64(), pa.string(), pa.float64(), pa.date32()]
    assert read["name"].to_pylist() == ["a\nb", None]


def test_an_empty_field_is_null_and_an_empty_string_if_quoted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,s\n1,\n,""\n3,NA\n')
    assert rows(tmp_path / "a.csv", format="csv") == [
        {"n": 1, "s": None},
        {"n": None, "s": ""},
        {"n": 3, "s": "NA"},
    ]


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_schema_gives_columns_and_types(tmp_path: Path, format: str) -> None:
    text = {"csv": "b,id,day\nx,007,2024-02-29\n", "json": '{"day":"2024-02-29","id":"007"}\n'}
    (tmp_path / "a").write_text(text[format])
    schema = {"id": "string", "day": "date32"} | ({"more": "int64"} if format == "json" else {})
    read = table(tmp_path / "a", format=format, schema=schema)
    assert read.schema.types[:2] == [pa.string(), pa.date32()]
    assert [str(value) for value in read.to_pylist()[0].values()][:2] == ["007", "2024-02-29"]


def test_later_files_have_the_types_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,s\n1.5,007\n")
    (tmp_path / "b.csv").write_text("s,n\n7,2\n")
    assert table(tmp_path / "*", format="csv").schema == pa.schema(
        {"n": pa.float64(), "s": pa.int64()}
    )
    (tmp_path / "c.csv").write_text("n,s\n1,1\n\nx,1\n")
    text = fails(tmp_path / "*", format="csv")
    assert f"line 4 of '{tmp_path}/c.csv': column 'n': " in text
    assert "conversion error to double: invalid value 'x'; give the column a type" in text
    assert "with schema=" in text


def test_a_csv_line_with_other_fields_than_the_first_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('n,s\n1,"a\nb"\n2\n')
    assert f"line 4 of '{tmp_path}/a.csv' has 1 fields, and the first line has 2: 2" in fails(
        tmp_path / "a.csv", format="csv"
    )


@pytest.mark.parametrize("content", [b"n,s\n1,a\n2,\xe9\n", b"n,s\n1,a\n2,b\n3,\xe9\n"])
def test_csv_text_that_is_not_utf_8_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    text, line = fails(tmp_path / "a.csv", format="csv"), content.count(b"\n")
    assert f"line {line} of '{tmp_path}/a.csv' is not UTF-8 text" in text
    assert "read_batches() reads only UTF-8, so convert the file" in text


@pytest.mark.parametrize("format", ["csv", "json"])
def test_empty_files_have_no_rows(tmp_path: Path, format: str) -> None:
    (tmp_path / "0").write_text("")
    (tmp_path / "1").write_text("n\n" if format == "csv" else "\n")
    assert batches(tmp_path / "*", format=format) == []
    (tmp_path / "2").write_text("n\n1\n" if format == "csv" else '{"n": 1}\n')
    (tmp_path / "3").write_text("")
    assert rows(tmp_path / "*", format=format) == [{"n": 1}]


@pytest.mark.parametrize("format", ["csv", "json"])
def test_columns_and_filter_apply_to_text(tmp_path: Path, format: str) -> None:
    path = tmp_path / "day=1" / "a"
    path.parent.mkdir()
    lines = {
        "csv": ["n,s,m", *(f"{n},x,1" for n in range(9))],
        "json": [f'{{"n": {n}, "s": "x", "m": 1}}' for n in range(9)],
    }
    path.write_text("\n".join(lines[format]))
    read = rows(path, format=format, columns=["day", "s"], filter=pc.field("n") > 6)
    assert read == [{"day": "1", "s": "x"}] * 2
    assert "has no such column; its columns are n, s, m, day" in fails(
        path, format=format, columns=["zz"]
    )


def test_csv_files_are_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"n\n1\n"))
    assert rows(tmp_path / "*", format="csv") == [{"n": 1}]


def test_large_files_are_many_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_blocks, "BLOCK", 100)
    (tmp_path / "a.csv").write_text("n\n" + "".join(f"{n}\n" for n in range(1000)))
    read = batches(tmp_path / "a.csv", format="csv")
    assert len(read) > 10
    assert [n for batch in read for n in batch["n"].to_pylist()] == [*range(1000)]


@pytest.mark.parametrize("readers", [1, 3])
def test_readers_share_json_lines(
    pyr: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readers: int
) -> None:
    monkeypatch.setattr(json_blocks, "BLOCK", 200)
    lines = [f'{{"n": {n}, "in": {{"a": [{n}]}}}}' for n in range(100)]
    (tmp_path / "a").write_text("\ufeff" + "\n".join(lines))
    dag = DAG()
    read = dag.vertex("read", p.read_batches(tmp_path / "a", "json"), local_parallelism=readers)
    dag.edge(between(read, dag.vertex("write", p.write_list("out"))))
    pyr.new_light_job(dag).execute().result(20)
    assert len(pyr.list("out")) > 10
    found = [row for batch in pyr.list("out") for row in batch.to_pylist()]
    assert sorted(row["in"]["a"][0] for row in found) == [*range(100)]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"n": ', "does not fit: JSON parse error: Invalid value."),
        ('{"n": "x"}', "does not fit: JSON parse error: Column(/n) changed from number to string"),
        ("[1]", "does not fit: JSON parse error: Column() changed from object to array"),
        ('{"n": 1, "m": 2}', "has a field 'm' that the first lines do not have; choose fields"),
        ('{"n": "\udce9"}', "is not UTF-8 text"),
    ],
)
def test_a_json_line_that_does_not_fit_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, why: str
) -> None:
    monkeypatch.setattr(json_blocks, "BLOCK", 50)
    text = '{"n": 1}\n' * 20 + "\n" + line + "\n" + '{"n": 1}\n' * 20
    (tmp_path / "a").write_bytes(text.encode(errors="surrogateescape"))
    assert f"line 22 of '{tmp_path}/a' {why}" in fails(tmp_path / "a", format="json")


@pytest.mark.parametrize(
    ("first", "second"),
    [('{"n": null}', '{"n": "x"}'), ('{"n": 1}', '{"n": "x"}'), ('{"n": 1}', '{"n": 1.5}')],
)
def test_a_schema_helps_where_json_lines_have_other_types(
    tmp_path: Path, first: str, second: str
) -> None:
    (tmp_path / "a").write_text(first)
    (tmp_path / "b").write_text(second)
    text = fails(tmp_path / "*", format="json")
    assert f"line 1 of '{tmp_path}/b' does not fit" in text
    assert f"{second}; give a type that fits with schema=" in text


def test_bad_json_lines_are_dead_letters(
    pyr: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_blocks, "BLOCK", 50)
    good, bad = '{"n": 1}', ["[1]", '{"n": "x"}', "{", '{"n": 2, "m": 1}']
    lines = [good, bad[0], *[good] * 20, bad[1], bad[2], good, bad[3]]
    (tmp_path / "a").write_text("\n".join(lines))
    dag = DAG()
    source, policy = p.read_batches(tmp_path / "a", "json"), dead_letter(p.write_list("bad"))
    read = dag.vertex("read", source, local_parallelism=2, on_error=policy)
    dag.edge(between(read, dag.vertex("write", p.write_list("out"))))
    pyr.new_light_job(dag).execute().result(20)
    assert [row for b in pyr.list("out") for row in b.to_pylist()] == [{"n": 1}] * 22
    letters = [letter["item"] for letter in pyr.list("bad")]
    assert sorted((letter["line"], letter["text"]) for letter in letters) == [
        (n + 1, line) for n, line in enumerate(lines) if line in bad
    ]


def test_an_empty_line_of_one_column_is_null(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n\n3\n")
    assert rows(tmp_path / "a.csv", format="csv") == [{"n": 1}, {"n": None}, {"n": 3}]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_lines_before_the_name_of_one_column_are_not_it(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(end.join(["", "", "n", "1", "", "3"]).encode())
    assert rows(path, format="csv") == [{"n": 1}, {"n": None}, {"n": 3}]
    (tmp_path / "b.csv").write_bytes(end.join(["", "n", "1", "x"]).encode())
    assert f"line 4 of '{tmp_path}/b.csv': column 'n'" in fails(tmp_path / "*", format="csv")


def test_a_schema_is_not_for_parquet() -> None:
    with pytest.raises(InvalidDAG, match="because parquet files have their own; leave schema out"):
        p.read_batches("x", schema={"n": int})
