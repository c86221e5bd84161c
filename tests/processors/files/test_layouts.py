"""Layouts of write_files: partitions, files of a size, one file, and compression. Whatever the
layout is, and however the items come, what is written is read back."""

from __future__ import annotations

import gzip
import os
import pickle
import re
import tempfile
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyrite import Instance, InvalidDAG, JobFailed, ProcessorError
from pyrite import processors as p
from pyrite.collections import MemoryCollections
from pyrite.context import MetaSupplierContext, ProcessorContext
from pyrite.engine.member import RunContext
from pyrite.processors.files import ReadFiles, WriteFiles, placing
from pyrite.processors.files.partitions import NoFolder, fields_of, folder_of
from tests.processors.files.jobs import copy, read_back

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=10)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"k": st.none() | TEXT.filter(bool), "y": st.integers(-3, 3), "n": st.integers(0, 10**9)}
    ),
    max_size=60,
)
LAYOUTS: list[dict[str, Any]] = [
    {},
    {"partition_by": "k"},
    {"partition_by": ["y", "k"]},
    {"partition_by": lambda row: row["n"] % 3},
    {"target_size": 100},
    {"target_size": 50, "partition_by": "y"},
    {"single_file": True},
    {"single_file": True, "partition_by": "y"},
]
TYPES = {"k": str | None, "y": int, "n": int}


def context(**more: Any) -> dict[str, Any]:
    run = RunContext(
        job_name="job",
        job_id="j",
        execution_id="e",
        member_count=3,
        collections=MemoryCollections(),
    )
    return {**run.fields("write", 1), **more}


def write(sink: Any, parts: Sequence[Sequence[Any]], batch: int, **more: Any) -> None:
    """Writes each part with a writer of its own, and commits."""
    step = sink.step
    assert isinstance(step, WriteFiles)
    commit = step.begin(MetaSupplierContext(**context()))
    reports = []
    for index, items in enumerate(parts):
        where = {"member_index": index, "local_index": 0, **more}
        writer = step.open(ProcessorContext(**context(**where)))
        for start in range(0, len(items), batch):
            writer.write(list(items[start : start + batch]))
        reports.append(writer.complete())
        writer.close()
    commit.commit(reports)
    commit.finish()


def read(folder: str | Path, format: str, **options: Any) -> list[Any]:
    step = p.read_files(f"{folder}/**/*", format=format, **options).step
    assert isinstance(step, ReadFiles)
    found = step.found("read", 1).files or ()
    return [item for split in step.splits(found, 1 << 20) for b in step.blocks(split) for item in b]


def tree(folder: str | Path) -> dict[str, bytes]:
    """All visible files in a folder and below it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def in_order(rows: Sequence[Any]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    ("format", "compression"),
    [
        ("csv", None),
        ("csv", "gzip"),
        ("jsonl", None),
        ("jsonl", "zstd"),
        ("parquet", None),
        ("parquet", "zstd"),
    ],
)
@settings(max_examples=15)
@given(rows=ROWS, cut=st.integers(0, 60), batch=st.integers(1, 40))
def test_rows_are_read_back_whatever_the_layout(
    rows: list[dict[str, Any]],
    cut: int,
    batch: int,
    format: str,
    compression: str | None,
    layout: dict[str, Any],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sink = p.write_files(folder, format=format, compression=compression, **layout)
        write(sink, [rows[:cut], rows[cut:], []], batch)
        names = layout.get("partition_by", [])
        folders = [] if callable(names) else [names] if isinstance(names, str) else names
        schema = TYPES if format == "csv" else {name: TYPES[name] for name in folders} or None
        if tree(folder):
            assert in_order(read(folder, format, schema=schema)) == in_order(rows)
        else:
            assert not rows


@settings(max_examples=40)
@given(rows=ROWS, batches=st.tuples(st.integers(1, 60), st.integers(1, 60)))
@pytest.mark.parametrize("format", ["csv", "jsonl"])
@pytest.mark.parametrize("compression", [None, "gzip", "zstd"])
def test_equal_items_make_equal_files_however_they_come(
    rows: list[dict[str, Any]], batches: tuple[int, int], format: str, compression: str | None
) -> None:
    made = []
    for attempt, batch in enumerate(batches):
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(placing, "MOST_OPEN", 2)
            patch.setattr(placing, "MOST_WAITING", 7)
            patch.setattr(placing, "ITEMS_AT_A_TIME", 3)
            sink = p.write_files(
                folder, format=format, partition_by="y", target_size=40, compression=compression
            )
            write(sink, [rows], batch, must_repeat=True, attempt=str(attempt))
            made.append(tree(folder))
    assert made[0] == made[1]


@given(name=TEXT.filter(bool), value=st.none() | TEXT.filter(bool))
def test_the_field_of_a_folder_is_read_back(name: str, value: str | None) -> None:
    folder = folder_of(value, name)
    assert fields_of(f"/a/{folder}/part") == {name: value}
    assert not set('/*?[]"') & set(folder)
    assert not folder.startswith(".")


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        ("DE", "c=DE"),
        (7, "c=7"),
        (True, "c=true"),
        (date(2024, 1, 31), "c=2024-01-31"),
        (Decimal("1.50"), "c=1.50"),
        (None, "c=__HIVE_DEFAULT_PARTITION__"),
        ("a/b:c=d", "c=a%2Fb%3Ac%3Dd"),
    ],
)
def test_folders_have_the_names_that_spark_gives(value: Any, folder: str) -> None:
    assert folder_of(value, "c") == folder


@pytest.mark.parametrize("value", ["", 1.5, [1], "x" * 300, "\ud800", "__HIVE_DEFAULT_PARTITION__"])
def test_no_folder_is_named_after_what_could_not_be_read_back(value: Any) -> None:
    with pytest.raises(NoFolder):
        folder_of(value, "c")


def test_rows_go_to_the_folders_of_their_fields(pyr: Instance, tmp_path: Path) -> None:
    rows = [{"country": "DE", "n": "1"}, {"country": "FR", "n": "2"}, {"country": "DE", "n": "3"}]
    sink = p.write_files(tmp_path, format="csv", partition_by="country")
    copy(pyr, p.read_items(rows), sink)
    assert tree(tmp_path) == {
        "country=DE/part-00000.csv": b"n\r\n1\r\n3\r\n",
        "country=FR/part-00000.csv": b"n\r\n2\r\n",
    }
    back = read_back(pyr, tmp_path / "*" / "*.csv", "csv")
    assert in_order(back) == in_order(rows)
    assert read_back(pyr, tmp_path / "country=FR" / "*.csv", "csv") == [rows[1]]


def test_other_programs_read_partitions(pyr: Instance, tmp_path: Path) -> None:
    rows = [{"year": 2023 + n % 2, "n": n} for n in range(10)]
    sink = p.write_files(tmp_path, format="parquet", partition_by="year", schema="year int, n long")
    copy(pyr, p.read_items(rows), sink, parallelism=2)
    frame = pandas.read_parquet(tmp_path).astype({"year": int})
    assert in_order(frame.to_dict("records")) == in_order(rows)


def test_a_function_names_folders_for_any_items(pyr: Instance, tmp_path: Path) -> None:
    lines = ["2024-01 a", "2024-02 b", "2024-01 c"]
    copy(pyr, p.read_items(lines), p.write_files(tmp_path, partition_by=lambda line: line[:7]))
    assert tree(tmp_path) == {
        "2024-01/part-00000.txt": b"2024-01 a\n2024-01 c\n",
        "2024-02/part-00000.txt": b"2024-02 b\n",
    }


def test_the_next_job_replaces_all_partitions_and_leaves_no_empty_folder(
    pyr: Instance, tmp_path: Path
) -> None:
    sink = p.write_files(tmp_path, format="jsonl", partition_by=["a", "b"])
    copy(pyr, p.read_items([{"a": 1, "b": n, "n": n} for n in range(5)]), sink)
    (tmp_path / "a=1" / "b=0" / "mine").write_text("mine")
    copy(pyr, p.read_items([{"a": 1, "b": 4, "n": 0}, {"a": 2, "b": 0, "n": 0}]), sink)
    assert sorted(tree(tmp_path)) == [
        "a=1/b=0/mine",
        "a=1/b=4/part-00000.jsonl",
        "a=2/b=0/part-00000.jsonl",
    ]
    copy(pyr, p.read_items([]), sink)
    assert [path for path, _, _ in os.walk(tmp_path)] == [
        str(tmp_path / name) for name in (".", "a=1", "a=1/b=0")
    ]


def test_a_job_that_fails_leaves_partitions_as_they_were(pyr: Instance, tmp_path: Path) -> None:
    sink = p.write_files(tmp_path / "out", format="jsonl", partition_by="a")
    copy(pyr, p.read_items([{"a": 1, "n": 1}]), sink)
    before = tree(tmp_path)
    with pytest.raises(JobFailed, match="field 'a', which an item lacks"):
        copy(pyr, p.read_items([{"a": 2, "n": 2}, {"n": 3}]), sink)
    assert tree(tmp_path) == before
    (tmp_path / "out" / "a=2").mkdir()
    (tmp_path / "out" / "a=2" / "part-00000.jsonl").write_text("mine")
    with pytest.raises(JobFailed, match=r"replace '.*/a=2/part-00000.jsonl', which no job has wri"):
        copy(pyr, p.read_items([{"a": 2, "n": 2}]), sink)
    assert tree(tmp_path) == before | {"out/a=2/part-00000.jsonl": b"mine"}


def test_a_file_in_the_place_of_a_folder_is_named_and_all_is_put_back(
    pyr: Instance, tmp_path: Path
) -> None:
    sink = p.write_files(tmp_path, format="jsonl", partition_by="a")
    copy(pyr, p.read_items([{"a": 1, "n": 1}]), sink)
    (tmp_path / "a=2").write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(JobFailed, match=r"cannot commit to folder .*a=2"):
        copy(pyr, p.read_items([{"a": 0, "n": 1}, {"a": 2, "n": 2}]), sink)
    assert tree(tmp_path) == before
    assert sorted(os.listdir(tmp_path)) == [".pyrite-files", "a=1", "a=2"]


def test_more_partitions_than_files_that_may_be_open_are_written(
    pyr: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placing, "MOST_OPEN", 3)
    monkeypatch.setattr(placing, "MOST_WAITING", 20)
    monkeypatch.setattr(placing, "ITEMS_AT_A_TIME", 5)
    rows = [{"a": n % 7, "n": n} for n in range(100)]
    sink = p.write_files(tmp_path, format="jsonl", partition_by="a")
    copy(pyr, p.read_items(rows), sink)
    assert in_order(read(tmp_path, "jsonl", schema={"a": int})) == in_order(rows)
    files = sorted(tree(tmp_path))
    assert [name for name in files if name < "a=3"] == [f"a={n}/part-00000.jsonl" for n in range(3)]
    assert files[-1] == "a=6/part-00000_00002.jsonl"


@pytest.mark.parametrize(
    ("partition_by", "item", "message"),
    [
        ("a", {"n": 1}, "vertex 'write' partitions by field 'a', which an item lacks: {'n': 1}"),
        ("a", [1], "vertex 'write' writes rows, so each item must be a dict; got [1]"),
        (
            "a",
            {"a": "", "n": 1},
            "cannot name a folder after '', because it is empty; use None: {'a': '', 'n': 1}",
        ),
        (
            "a",
            {"a": 0.5, "n": 1},
            "cannot name a folder after 0.5, because it is a float; use a str, int, bool, date or "
            "Decimal: {'a': 0.5, 'n': 1}",
        ),
        (lambda row: row["x"], {"n": 1}, "raised KeyError('x') for an item: {'n': 1}"),
        (
            lambda row: row.get("a", row),
            {"n": 1},
            "because it is a dict; use a str, int, bool, date or Decimal",
        ),
    ],
)
def test_an_item_without_a_partition_is_named(
    pyr: Instance, tmp_path: Path, partition_by: Any, item: Any, message: str
) -> None:
    sink = p.write_files(tmp_path / "out", format="jsonl", partition_by=partition_by)
    with pytest.raises(JobFailed, match=re.escape(message)) as failed:
        copy(pyr, p.read_items([{"a": 1, "x": 1}, item]), sink)
    assert (failed.value.vertex, failed.value.item) == ("write", item)
    assert not (tmp_path / "out").exists()


def test_a_csv_row_that_has_only_its_partition_is_named(pyr: Instance, tmp_path: Path) -> None:
    sink = p.write_files(tmp_path, format="csv", partition_by="a")
    with pytest.raises(JobFailed, match="cannot write a row without any field as CSV"):
        copy(pyr, p.read_items([{"a": 1}]), sink)


@pytest.mark.parametrize(
    ("format", "compression"),
    [("text", None), ("csv", None), ("jsonl", "gzip"), ("jsonl", "zstd"), ("parquet", "zstd")],
)
def test_files_have_about_the_target_size(
    pyr: Instance, tmp_path: Path, format: str, compression: str | None
) -> None:
    rows = [{"a": f"{n * 7919 % 100_003:x}{n**5:x}", "n": str(n)} for n in range(60_000)]
    items: list[Any] = [str(row) for row in rows] if format == "text" else rows
    target = 200_000
    sink = p.write_files(tmp_path, format=format, target_size=target, compression=compression)
    copy(pyr, p.read_items(items), sink)
    sizes = [len(content) for content in tree(tmp_path).values()]
    assert len(sizes) > 2
    assert all(0.85 * target < size < 1.7 * target for size in sizes[:-1]), sizes
    assert read_back(pyr, tmp_path / "*", format) == items


@pytest.mark.parametrize("format", ["text", "csv", "jsonl"])
@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_packed_files_are_read_back(
    pyr: Instance, tmp_path: Path, format: str, compression: str
) -> None:
    items: list[Any] = [{"a": str(n)} for n in range(1000)]
    if format == "text":
        items = [str(item) for item in items]
    copy(pyr, p.read_items(items), p.write_files(tmp_path, format=format, compression=compression))
    (name,) = tree(tmp_path)
    assert name.endswith(".gz" if compression == "gzip" else ".zst")
    assert len(tree(tmp_path)[name]) < 5000
    assert read_back(pyr, tmp_path / "*", format) == items


def test_a_gzip_file_is_one_for_other_programs(pyr: Instance, tmp_path: Path) -> None:
    copy(pyr, p.read_items(["a", "b"]), p.write_files(tmp_path, compression="gzip"))
    assert gzip.decompress((tmp_path / "part-00000.txt.gz").read_bytes()) == b"a\nb\n"


@pytest.mark.parametrize("codec", ["snappy", "zstd", "gzip", "lz4", "brotli", "none"])
@pytest.mark.parametrize("single_file", [True, False])
def test_parquet_files_have_the_codec_asked_for(
    pyr: Instance, tmp_path: Path, codec: str, single_file: bool
) -> None:
    rows: list[Any] = [{"a": n} for n in range(10)] + [{"a": 0.5}]  # one file is written again
    sink = p.write_files(tmp_path, format="parquet", compression=codec, single_file=single_file)
    copy(pyr, p.read_items(rows), sink, parallelism=2)
    for path in tmp_path.glob("*.parquet"):
        column = pq.ParquetFile(path).metadata.row_group(0).column(0)
        assert column.compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())
    assert sorted(row["a"] for row in read_back(pyr, tmp_path / "*", "parquet")) == sorted(
        row["a"] for row in rows
    )


@pytest.mark.parametrize("format", ["text", "csv", "jsonl", "parquet"])
@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("marked", [False, True])
def test_many_processors_write_one_file(
    pyr: Instance, tmp_path: Path, format: str, compression: str | None, marked: bool
) -> None:
    mark = "\ufeff" if marked else ""
    items: list[Any] = [{f"{mark}a": f"{mark}{n}"} for n in range(300)]
    if format == "text":
        items = [f"{mark}{n}" for n in range(300)]
    sink = p.write_files(tmp_path, format=format, compression=compression, single_file=True)
    copy(pyr, p.read_items(items), sink, parallelism=4, readers=2)
    assert [name.split(".")[0] for name in tree(tmp_path)] == ["part-00000"]
    back = read_back(pyr, tmp_path / "*", format)
    assert sorted(map(repr, back)) == sorted(map(repr, items))


def test_the_one_file_may_have_a_name(pyr: Instance, tmp_path: Path) -> None:
    sink = p.write_files(tmp_path, format="csv", single_file="report.csv")
    copy(pyr, p.read_items([{"a": 1}]), sink, parallelism=3)
    assert tree(tmp_path) == {"report.csv": b"a\r\n1\r\n"}
    copy(pyr, p.read_items([{"a": 2}]), sink, parallelism=3)
    assert tree(tmp_path) == {"report.csv": b"a\r\n2\r\n"}


def test_rows_of_different_fields_do_not_become_one_csv_file(pyr: Instance, tmp_path: Path) -> None:
    sink = p.write_files(tmp_path, format="csv", single_file=True)
    with pytest.raises(
        ProcessorError, match=r"'write' cannot write one CSV file, because some .* fields a, c, "
    ):
        write(sink, [[{"a": 1, "c": 1}], [{"b": 1}]], 1)


def test_rows_with_their_fields_in_another_order_become_one_csv_file(tmp_path: Path) -> None:
    sink = p.write_files(tmp_path, format="csv", single_file=True)
    write(sink, [[{"a": 1, "b": "\n"}], [], [{"b": "2", "a": 3}]], 1)
    assert tree(tmp_path) == {"part-00000.csv": b'a,b\r\n1,"\n"\r\n3,2\r\n'}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "text", "partition_by": "a"}, "lines of text have no fields; give a function"),
        ({"partition_by": []}, "must be the name of a field, a list of such names, or a function"),
        ({"partition_by": ["a", "a"]}, "must be the name of a field, a list of such names, or a"),
        (
            {"partition_by": 3},
            "must be the name of a field, a list of such names, or a",
        ),
        (
            {"target_size": 0},
            "target_size of write_files() must be a positive number of",
        ),
        ({"target_size": "1 MB"}, "must be a positive number of bytes; got '1 MB'"),
        ({"target_size": 1, "single_file": True}, "which makes several files, and single_file; le"),
        ({"single_file": "a/b"}, "must be True, or the name of the file in the folder; got 'a/b'"),
        ({"single_file": ".a"}, "must be True, or the name of the file in the folder; got '.a'"),
        (
            {"single_file": "a.csv", "compression": "gzip"},
            "single_file of write_files() is 'a.csv', but the file will be written as '.csv.gz'",
        ),
        ({"single_file": "a.csv.gz"}, "but the file will be written as '.csv'"),
        ({"compression": "zip"}, "must be one of gzip, zstd if format is 'csv'; got 'zip'"),
        (
            {"format": "parquet", "compression": "zip"},
            "must be one of snappy, zstd, gzip, lz4, brotli, none if format is 'parquet'; got",
        ),
        (
            {"format": "parquet", "schema": "a int", "partition_by": "a"},
            "has no field besides those in partition_by",
        ),
    ],
)
def test_options_that_cannot_be_used_are_refused_at_once(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidDAG, match=re.escape(message)):
        p.write_files("x", **{"format": "csv", **options})


def test_a_sink_with_all_its_options_travels() -> None:
    step = p.write_files("a", "csv", partition_by=["a"], target_size=9, compression="zstd").step
    assert pickle.loads(pickle.dumps(step)) == step
