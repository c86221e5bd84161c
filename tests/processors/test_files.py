"""Files: every format reads back what it wrote, a failed job leaves no files, and errors name the
file that cannot be read."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, Instance, JobFailed, between, from_
from pyrite import processors as p
from pyrite.processors.storage import LocalStorage
from pyrite.testing import verify_processor

ROWS = [{"name": f"näme {n}", "size": n} for n in range(3000)]
ITEMS: dict[str, list[Any]] = {
    "text": ["ä line", "", "  spaces  ", *map(str, range(3000))],
    "csv": [{"name": row["name"], "size": str(row["size"])} for row in ROWS]
    + [{"name": 'quo"te,\nnew line', "size": ""}],
    "jsonl": [*ROWS, [1, None], "text", 3.5, {"line": "a\nb"}],
    "json": ROWS,
    "parquet": ROWS,
}


def copy(pyr: Instance, source: Any, sink: Any, *, parallelism: int = 1) -> None:
    dag = DAG()
    read = dag.vertex("read", source)
    write = dag.vertex("write", sink, local_parallelism=parallelism)
    dag.edge(between(read, write))
    pyr.new_light_job(dag).execute().result(20)


def read_back(pyr: Instance, pattern: Path | str, format: str) -> list[Any]:
    pyr.list("back").clear()
    copy(pyr, p.read_files(pattern, format=format), p.write_list("back"))
    return list(pyr.list("back"))


@pytest.mark.parametrize("format", list(ITEMS))
@pytest.mark.parametrize("parallelism", [1, 3])
def test_what_is_written_is_read_back(
    pyr: Instance, tmp_path: Path, format: str, parallelism: int
) -> None:
    out = tmp_path / "new" / "out"
    copy(
        pyr, p.read_items(ITEMS[format]), p.write_files(out, format=format), parallelism=parallelism
    )
    files = sorted(os.listdir(out))
    assert [name.split(".")[0] for name in files] == [f"part-{n:05d}" for n in range(parallelism)]
    back = read_back(pyr, out / "*", format)
    assert sorted(map(repr, back)) == sorted(map(repr, ITEMS[format]))
    if parallelism == 1:
        assert back == ITEMS[format]


@pytest.mark.parametrize("parallelism", [1, 2, 4])
def test_files_are_divided_among_processors(
    pyr: Instance, tmp_path: Path, parallelism: int
) -> None:
    for n in range(5):
        (tmp_path / f"{n}.txt").write_text(f"{n}a\n{n}b\n")
    dag = DAG()
    read = dag.vertex("read", p.read_files(tmp_path / "*.txt"), local_parallelism=parallelism)
    dag.edge(between(read, dag.vertex("sink", p.write_list("out"), local_parallelism=1)))
    pyr.new_light_job(dag).execute().result(10)
    assert sorted(pyr.list("out")) == sorted(f"{n}{x}" for n in range(5) for x in "ab")


def test_the_harness_reads_and_writes_files(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\nb")
    verify_processor(p.read_files(tmp_path / "in.txt"), [], ["a", "b"])


def test_line_endings_a_byte_order_mark_and_gzip_are_understood(
    pyr: Instance, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    with gzip.open(tmp_path / "b.txt.gz", "wt") as file:
        file.write("three\n")
    assert read_back(pyr, tmp_path / "*", "text") == ["one", "two", "three"]


def test_a_job_that_fails_leaves_nothing_behind_and_what_was_there_as_it_was(
    pyr: Instance, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    dag = DAG()
    read = dag.vertex("read", p.read_items(range(100_000)))
    bad = dag.vertex("bad", p.map(lambda n: 1 // (99_999 - n)))
    dag.edge(between(read, bad)).edge(between(bad, dag.vertex("write", p.write_files(out))))
    with pytest.raises(JobFailed, match="vertex 'bad'"):
        pyr.new_light_job(dag).execute().result(20)
    assert not out.exists()
    copy(pyr, p.read_items(["kept"]), p.write_files(out))
    with pytest.raises(JobFailed, match="vertex 'bad'"):
        pyr.new_light_job(dag).execute().result(20)
    assert os.listdir(out) == ["part-00000.txt"]
    assert (out / "part-00000.txt").read_text() == "kept\n"


def test_a_job_replaces_the_files_of_the_one_before_and_no_others(
    pyr: Instance, tmp_path: Path
) -> None:
    (tmp_path / "README.txt").write_text("mine")
    copy(pyr, p.read_items(range(10)), p.write_files(tmp_path), parallelism=3)
    copy(pyr, p.read_items(range(5)), p.write_files(tmp_path), parallelism=2)
    assert sorted(os.listdir(tmp_path)) == ["README.txt", "part-00000.txt", "part-00001.txt"]
    assert sorted(read_back(pyr, tmp_path / "part-*", "text")) == list("01234")


def test_empty_input_makes_empty_files(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for format in ("text", "csv", "jsonl"):
        assert read_back(pyr, tmp_path / "empty", format) == []
        copy(pyr, p.read_items([]), p.write_files(tmp_path / format, format=format))
        assert read_back(pyr, tmp_path / format / "*", format) == []


@pytest.mark.parametrize(
    ("format", "content", "message"),
    [
        ("text", b"\xff\xfe\xfa", "is not UTF-8 text"),
        ("csv", b"a,b\n1,2\n3\n", r"line 3 of CSV file .* has 1 fields, but its header has 2"),
        ("csv", b"a,a\n1,2\n", "names a field twice"),
        ("csv", b'a,b\n"1,2\n', "line 2 of CSV file .* cannot be read"),
        ("jsonl", b'{"a": 1}\n{"a": \n', "line 2 of .* is not JSON"),
        ("parquet", b"nothing", "is not a Parquet file"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    pyr: Instance, tmp_path: Path, format: str, content: bytes, message: str
) -> None:
    (tmp_path / "bad.file").write_bytes(content)
    with pytest.raises(JobFailed, match=message) as failed:
        read_back(pyr, tmp_path / "bad.file", format)
    assert failed.value.vertex == "read"
    assert "bad.file" in str(failed.value)


def test_a_pattern_without_files_and_a_folder_that_cannot_be_written_are_named(
    pyr: Instance, tmp_path: Path
) -> None:
    with pytest.raises(JobFailed, match=r"no file matches .*nothing.*, which vertex 'read' reads"):
        read_back(pyr, tmp_path / "nothing*", "text")
    (tmp_path / "file").touch()
    with pytest.raises(JobFailed, match="vertex 'write' cannot write to folder") as failed:
        copy(pyr, p.read_items([1]), p.write_files(tmp_path / "file"))
    assert failed.value.vertex == "write"


@pytest.mark.parametrize(
    ("format", "item", "message"),
    [
        ("text", "two\nlines", "line break"),
        ("csv", "x", "must be a dict"),
        ("csv", {"other": 1}, "with the fields a"),
        ("jsonl", {1, 2}, "cannot write an item as JSON"),
        ("parquet", 3, "must be a dict"),
    ],
)
def test_an_item_that_a_format_cannot_hold_is_named(
    pyr: Instance, tmp_path: Path, format: str, item: Any, message: str
) -> None:
    good: Any = {"a": 1} if format != "text" else "a"
    with pytest.raises(JobFailed, match=message) as failed:
        copy(pyr, p.read_items([good, item]), p.write_files(tmp_path / "out", format=format))
    assert (failed.value.vertex, failed.value.item) == ("write", item)
    assert not (tmp_path / "out").exists()


def test_parquet_rows_of_differing_types_are_refused(pyr: Instance, tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match="rows of differing types"):
        copy(
            pyr,
            p.read_items([{"a": 1}, {"a": "x"}]),
            p.write_files(tmp_path / "out", format="parquet"),
        )


def test_parquet_keeps_fields_that_only_later_rows_have(pyr: Instance, tmp_path: Path) -> None:
    copy(
        pyr,
        p.read_items([{"a": 1}, {"a": 2, "b": 3}]),
        p.write_files(tmp_path / "out", format="parquet"),
    )
    assert read_back(pyr, tmp_path / "out" / "*", "parquet") == [
        {"a": 1, "b": None},
        {"a": 2, "b": 3},
    ]
    copy(pyr, p.read_items([]), p.write_files(tmp_path / "none", format="parquet"))
    assert read_back(pyr, tmp_path / "none" / "*", "parquet") == []


def test_a_csv_field_may_hold_any_line_break_and_be_long(pyr: Instance, tmp_path: Path) -> None:
    rows = [{"a": "one\rtwo", "b": "x" * 200_000}, {"a": "\r\n", "b": ""}]
    copy(pyr, p.read_items(rows), p.write_files(tmp_path / "out", format="csv"))
    assert read_back(pyr, tmp_path / "out" / "*", "csv") == rows


def test_a_failed_job_leaves_the_users_own_empty_folder(pyr: Instance, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    with pytest.raises(JobFailed):
        copy(pyr, p.read_items(["a", "b\nc"]), p.write_files(out))
    assert list(out.iterdir()) == []


def test_a_job_with_another_format_replaces_the_files_of_the_one_before(
    pyr: Instance, tmp_path: Path
) -> None:
    copy(pyr, p.read_items(["a"]), p.write_files(tmp_path))
    copy(pyr, p.read_items([{"a": 1}]), p.write_files(tmp_path, format="jsonl"))
    assert os.listdir(tmp_path) == ["part-00000.jsonl"]


def test_a_truncated_archive_is_named(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"line\n" * 1000)[:-10])
    with pytest.raises(JobFailed, match=r"cut.txt.gz' cannot be read"):
        read_back(pyr, tmp_path / "cut.txt.gz", "text")


def copy_to_both(pyr: Instance, items: list[str], one: Any, two: Any) -> None:
    dag = DAG()
    read = dag.vertex("read", p.read_items(items))
    dag.edge(from_(read, 0).to(dag.vertex("one", one, local_parallelism=1)))
    dag.edge(from_(read, 1).to(dag.vertex("two", two, local_parallelism=1)))
    pyr.new_light_job(dag).execute().result(10)


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_when_one_of_two_sinks_cannot_be_committed_neither_is(
    pyr: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = p.write_files(tmp_path / "1"), p.write_files(tmp_path / "2")
    copy_to_both(pyr, ["old"], one, two)
    (tmp_path / "1" / "part-00007.txt").write_text("older")
    (tmp_path / "2" / "mine.txt").write_text("mine")
    before = contents(tmp_path / "1"), contents(tmp_path / "2")

    def move(self: LocalStorage, path: str, to: str) -> None:
        if to == f"{tmp_path}/2/part-00000.txt" and "before" not in path:
            raise OSError("the disk is full")
        os.replace(path, to)

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "move", move)
        with pytest.raises(JobFailed, match="the disk is full") as failed:
            copy_to_both(pyr, ["new"], one, two)
    assert failed.value.vertex == "two"
    assert (contents(tmp_path / "1"), contents(tmp_path / "2")) == before
    copy_to_both(pyr, ["new"], one, two)
    assert contents(tmp_path / "1") == {"part-00000.txt": "new\n"}
    assert contents(tmp_path / "2") == {"part-00000.txt": "new\n", "mine.txt": "mine"}


def test_what_cannot_be_put_back_is_kept(
    pyr: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    copy(pyr, p.read_items(["old"]), p.write_files(tmp_path))

    def move(self: LocalStorage, path: str, to: str) -> None:
        if to == f"{tmp_path}/part-00000.txt":
            raise OSError("the disk is gone")
        os.replace(path, to)

    monkeypatch.setattr(LocalStorage, "move", move)
    with pytest.raises(JobFailed, match="the disk is gone"):
        copy(pyr, p.read_items(["new"]), p.write_files(tmp_path))
    (kept,) = tmp_path.glob(".pyrite-*/before/*")
    assert kept.read_text() == "old\n"
    assert f"it is in '{kept.parent}'" in caplog.text
