"""Files: every format reads back what it wrote; a job that fails leaves nothing; what cannot be
read is named."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from pyrite import DAG, Instance, JobFailed, between
from pyrite import processors as p
from pyrite.processors.files.storage import Found, LocalStorage
from pyrite.testing import verify_processor
from tests.processors.files.jobs import ITEMS, copy, read_back, visible


@pytest.mark.parametrize("format", list(ITEMS))
@pytest.mark.parametrize("parallelism", [1, 3])
def test_what_is_written_is_read_back(
    pyr: Instance, tmp_path: Path, format: str, parallelism: int
) -> None:
    out = tmp_path / "new" / "out"
    copy(
        pyr, p.read_items(ITEMS[format]), p.write_files(out, format=format), parallelism=parallelism
    )
    files = visible(out)
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
    (tmp_path / "folder").mkdir()
    with pytest.raises(JobFailed, match=r"it is a folder: .* such as '.*folder/\*'"):
        read_back(pyr, tmp_path / "folder", "text")
    with pytest.raises(JobFailed, match=r"'write' cannot write to folder .*it is a file") as failed:
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


def test_a_csv_field_may_hold_any_line_break_and_be_long(pyr: Instance, tmp_path: Path) -> None:
    rows = [{"a": "one\rtwo", "b": "x" * 200_000}, {"a": "\r\n", "b": ""}]
    copy(pyr, p.read_items(rows), p.write_files(tmp_path / "out", format="csv"))
    assert read_back(pyr, tmp_path / "out" / "*", "csv") == rows


def test_a_truncated_archive_is_named(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "cut.txt.gz").write_bytes(gzip.compress(b"line\n" * 1000)[:-10])
    with pytest.raises(JobFailed, match=r"cut.txt.gz' cannot be read"):
        read_back(pyr, tmp_path / "cut.txt.gz", "text")


@pytest.mark.parametrize(
    ("format", "item"),
    [
        ("text", "half \ud800"),
        ("jsonl", {"a": "half \ud800"}),
        ("csv", {"a": "half \ud800"}),
        ("csv", {"half \ud800": "a"}),
    ],
)
def test_half_a_surrogate_pair_is_named_with_its_item(
    pyr: Instance, tmp_path: Path, format: str, item: Any
) -> None:
    good = [] if isinstance(item, dict) and "a" not in item else [{"a": "b"}]
    with pytest.raises(JobFailed, match=r"half of a surrogate pair \('\\ud800' at pos") as failed:
        copy(pyr, p.read_items([*good, item]), p.write_files(tmp_path / "out", format=format))
    assert (failed.value.vertex, failed.value.item) == ("write", item)


@pytest.mark.parametrize("readers", [1, 4])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("null", "is null, and None cannot be an item; remove the line, or wrap it"),
        ("{1}", "is not JSON"),
        ("1 2", "is not JSON"),
        ("[" * 100_000, "is not JSON|is nested too deeply"),
    ],
)
def test_a_bad_json_line_is_named_with_its_file_and_number(
    pyr: Instance, tmp_path: Path, readers: int, line: str, message: str
) -> None:
    lines = [f'{{"n": {n}}}' for n in range(1000)]
    lines[876] = line
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    source = p.read_files(tmp_path / "*", format="jsonl")
    with pytest.raises(JobFailed, match=f"line 877 of '.*/a.jsonl' ({message})"):
        copy(pyr, source, p.write_list("out"), readers=readers)


def test_json_lines_may_be_empty_and_have_white_space(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(' {"a": 1}\n\n  \n[2] \r\n"x"\n0\nfalse\n')
    assert read_back(pyr, tmp_path / "a", "jsonl") == [{"a": 1}, [2], "x", 0, False]


def test_bytes_that_are_not_text_are_named_with_their_place(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"line\n" * 100_000 + b"\xff\n")
    with pytest.raises(JobFailed, match=r"'.*/a' is not UTF-8 text: byte 500000 is 0xff"):
        copy(pyr, p.read_files(tmp_path / "a"), p.write_list("out"), readers=2)


def test_a_line_break_is_found_wherever_it_is(pyr: Instance, tmp_path: Path) -> None:
    class Odd:
        def __str__(self) -> str:
            return "a\rb"

    for item in ("a\n", "\n", "\r", Odd()):
        with pytest.raises(JobFailed, match="line break") as failed:
            copy(pyr, p.read_items(["x", item, "y", 1]), p.write_files(tmp_path))
        assert failed.value.item is item


def test_a_bad_byte_is_counted_from_the_start_of_the_file_even_after_a_byte_order_mark(
    pyr: Instance, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfab\xff\n")
    with pytest.raises(JobFailed, match=r"'.*/a' is not UTF-8 text: byte 5 is 0xff"):
        read_back(pyr, tmp_path / "*", "text")


def test_all_processors_of_a_job_read_the_files_that_the_first_found(
    pyr: Instance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = LocalStorage.find

    def find(self: LocalStorage, pattern: str) -> list[Found]:
        files = found(self, pattern)
        (tmp_path / f"{len(files)} came later").write_text("late\n" * 100)
        return files

    (tmp_path / "a").write_text("".join(f"{n}\n" for n in range(1000)))
    monkeypatch.setattr(LocalStorage, "find", find)
    for files in (1, 2):  # each execution looks for itself
        pyr.list("out").clear()
        copy(pyr, p.read_files(tmp_path / "*"), p.write_list("out"), readers=3)
        late = ["late"] * 100 * (files - 1)
        assert sorted(pyr.list("out")) == sorted([*map(str, range(1000)), *late])


@pytest.mark.parametrize(
    ("format", "items"),
    [
        ("text", ["\ufeffx", "y"]),
        ("jsonl", ["\ufeffx"]),
        ("csv", [{"\ufeffa": "1", "b": "\ufeff"}]),
    ],
)
def test_a_leading_byte_order_mark_of_an_item_is_kept(
    pyr: Instance, tmp_path: Path, format: str, items: list[Any]
) -> None:
    copy(pyr, p.read_items(items), p.write_files(tmp_path / "out", format=format))
    assert read_back(pyr, tmp_path / "out" / "*", format) == items
