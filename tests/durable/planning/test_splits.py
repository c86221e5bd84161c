"""Sources in splits: together they have the items of the source, each once, and its errors."""

from __future__ import annotations

import gzip
import io
import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrite import DAG, Instance, InvalidDAG, JobFailed, between
from pyrite import processors as p
from pyrite.collections import MemoryCollections
from pyrite.durable.planning.splits import Cut, cut
from pyrite.errors import ProcessorError
from pyrite.processors.files.lines import Range
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import ReadStep
from pyrite.testing import verify_processor
from tests.processors.files.jobs import ITEMS, copy, copying

any_folder = settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


class Fresh:
    """An iterable of one's own, which can be iterated again but not sliced."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)


def cut_of(source: StepSupplier, collections: MemoryCollections | None = None, **most: int) -> Cut:
    assert isinstance(source.step, ReadStep)
    made = cut(source.step, "read", collections=collections or MemoryCollections(), **most)
    assert made is not None
    return made


def travelled(made: Cut) -> tuple[list[Any], StepSupplier]:
    """The splits and the step as another process gets them."""
    splits = [pickle.loads(pickle.dumps(split)) for split in made.splits]
    return splits, StepSupplier(cloudpickle.loads(cloudpickle.dumps(made.step)))


def items_in(made: Cut) -> list[Any]:
    splits, supplier = travelled(made)
    found: list[Any] = []
    for split in splits:
        for block in supplier.step.read(split):  # type: ignore[attr-defined]
            found.extend(block)
    verify_processor(supplier, splits, found)
    return found


@given(
    items=st.lists(st.integers() | st.text(max_size=2), max_size=30),
    kind=st.sampled_from([list, tuple, iter, Fresh]),
    most=st.integers(1, 12),
)
def test_items_are_in_order_and_each_once(items: list[Any], kind: Any, most: int) -> None:
    made = cut_of(p.read_items(kind(items)), most_items=most)
    splits, supplier = travelled(made)
    assert all(1 <= len(split) <= most for split in splits)
    verify_processor(supplier, splits, items)


@given(
    items=st.one_of(
        st.builds(range, st.integers(0, 9), st.integers(0, 99), st.integers(1, 9)),
        st.text(max_size=30),
        st.binary(max_size=30),
    )
)
def test_a_split_of_a_range_or_a_string_is_one_too(items: Any) -> None:
    splits, supplier = travelled(cut_of(p.read_items(items), most_items=4))
    assert all(type(split) is type(items) for split in splits)
    verify_processor(supplier, splits, list(items))


def test_a_generator_is_read_as_its_splits_are_asked_for() -> None:
    taken = []
    made = cut_of(p.read_items(taken.append(n) or n for n in range(100)), most_items=10)
    splits = iter(made.splits)
    assert (next(splits), len(taken)) == (list(range(10)), 10)


def test_a_generator_that_was_used_up_is_named() -> None:
    source = p.read_items(iter([1]))
    cut_of(source)
    with pytest.raises(ProcessorError, match=r"vertex 'read' reads .*has used up"):
        cut_of(source)


@given(st.dictionaries(st.integers(), st.text(max_size=2)), st.integers(1, 5))
def test_maps_and_lists_are_read_as_they_are_now(entries: dict[int, str], most: int) -> None:
    stored = MemoryCollections()
    stored.map("m").update(entries)
    stored.list("l").extend(entries)
    cuts = [
        cut_of(source, stored, most_items=most) for source in (p.read_map("m"), p.read_list("l"))
    ]
    stored.map("m").clear()
    stored.list("l").append("later")
    assert [items_in(made) for made in cuts] == [list(entries.items()), list(entries)]


lines = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=9))


@given(files=st.lists(lines, min_size=1, max_size=4), most=st.integers(1, 40))
@any_folder
def test_lines_of_files_are_each_in_one_split(
    tmp_path: Path, files: list[list[str]], most: int
) -> None:
    for number in range(4):
        written = files[number] if number < len(files) else []
        text = "".join(f"<{line}\n" for line in written)
        (tmp_path / f"{number}.txt").write_bytes(text.encode())
    source = p.read_files(tmp_path / "*.txt")
    expected = [f"<{line}" for written in files for line in written]
    assert items_in(cut_of(source, most_bytes=most)) == expected


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("format", list(ITEMS))
def test_files_of_all_formats_are_read_in_splits(
    pyr: Instance, tmp_path: Path, format: str, packed: bool
) -> None:
    copy(pyr, p.read_items(ITEMS[format]), p.write_files(tmp_path, format=format), parallelism=3)
    for file in tmp_path.glob("part-*") if packed else ():
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    copy(pyr, p.read_files(tmp_path / "part-*", format=format), p.write_list("whole"), readers=1)
    found = items_in(cut_of(p.read_files(tmp_path / "part-*", format=format), most_bytes=5000))
    assert sorted(map(repr, found)) == sorted(map(repr, pyr.list("whole")))
    assert len(found) == len(ITEMS[format])


def test_row_groups_are_each_in_one_split(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"n": list(range(1000))})
    pq.write_table(table, tmp_path / "n.parquet", row_group_size=100)
    made = cut_of(p.read_files(tmp_path / "*", "parquet", columns=["n"]), most_bytes=700)
    assert items_in(made) == table.to_pylist()


def test_a_large_file_is_divided_and_small_ones_are_together(tmp_path: Path) -> None:
    sizes = {"0.gz": 500, "a": 300, "b": 10, "c": 0, "d": 60, "e.gz": 500, "f": 1}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(b"\n" * size)
    splits: list[tuple[Range, ...]] = list(
        cut_of(p.read_files(tmp_path / "*"), most_bytes=100).splits
    )
    shown = [[(Path(part.path).name, part.start) for part in split] for split in splits]
    divided = [[("a", 0)], [("a", 100)], [("a", 200)]]
    together = [("b", 0), ("c", 0), ("d", 0)]
    assert shown == [[("0.gz", 0)], *divided, together, [("e.gz", 0)], [("f", 0)]]


def test_the_files_of_a_job_do_not_travel_with_its_step(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"{number}.txt").touch()
    assert len(cloudpickle.dumps(cut_of(p.read_files(tmp_path / "*.txt")).step)) < 1000


def failed_with(pyr: Instance, dag: DAG) -> JobFailed:
    with pytest.raises(JobFailed) as failed:
        pyr.new_light_job(dag).execute().result(10)
    return failed.value


def in_splits(source: StepSupplier, sink: Any = None, **most: int) -> DAG:
    """A job that reads a source through its splits."""
    splits, supplier = travelled(cut_of(source, None, **most))
    dag = DAG()
    vertices = [
        dag.vertex("splits", p.read_items(splits), local_parallelism=1),
        dag.vertex("read", supplier, local_parallelism=1),
        dag.vertex("write", sink or p.write_list("out"), local_parallelism=1),
    ]
    return dag.edge(between(vertices[0], vertices[1])).edge(between(vertices[1], vertices[2]))


def parquet_of_nothing() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "format", "content"),
    [
        ("bad", "text", b"line\n" * 100 + b"\xff\n"),
        ("bad.gz", "text", gzip.compress(b"line\n" * 1000)[:-10]),
        ("bad", "csv", b"a,b\n1,2\n3\n"),
        ("bad", "jsonl", b'{"a": 1}\n' * 100 + b'{"a": \n' + b"1\n" * 100),
        ("bad", "jsonl", b"1\n" * 100 + b"null\n"),
        ("bad", "parquet", b""),
        ("bad", "parquet", parquet_of_nothing()),
    ],
)
def test_errors_name_the_vertex_the_file_and_the_line_as_in_a_light_job(
    pyr: Instance, tmp_path: Path, name: str, format: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    source = p.read_files(tmp_path / "bad*", format=format)
    expected = failed_with(pyr, copying(source, p.write_list("out")))
    found = failed_with(pyr, in_splits(source, most_bytes=64))
    assert str(found.__cause__) == str(expected.__cause__)
    assert (found.vertex, found.item) == (expected.vertex, expected.item) == ("read", None)


@pytest.mark.parametrize(
    "sink", [p.noop(), p.group_and_accumulate(lambda item: item, 0, lambda n, _: n + 1)]
)
def test_none_is_refused_as_in_a_light_job(pyr: Instance, sink: StepSupplier) -> None:
    source = p.read_items(["a", None, "b"])
    expected = failed_with(pyr, copying(source, sink))
    found = failed_with(pyr, in_splits(source, sink=sink))
    assert str(found.__cause__) == str(expected.__cause__)
    assert (found.vertex, found.item) == (expected.vertex, expected.item) == ("read", None)


def test_a_pattern_without_files_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ProcessorError, match=r"no file matches .*, which vertex 'read' reads"):
        cut_of(p.read_files(tmp_path / "*"))


def test_files_in_memory_are_refused() -> None:
    with pytest.raises(InvalidDAG, match=r"vertex 'read' uses 'memory://in/\*'.* in each process"):
        cut_of(p.read_files("memory://in/*"))


def test_a_data_frame_is_refused_with_a_way_out() -> None:
    class Frame:
        def mapInArrow(self) -> None: ...

    with pytest.raises(InvalidDAG, match=r"vertex 'read' reads a Spark DataFrame.* to files"):
        cut_of(p.read_spark(Frame()))  # type: ignore[call-overload]


def test_another_kind_of_source_is_not_cut() -> None:
    class Own(ReadStep):
        pass

    assert cut(Own(), "read", collections=MemoryCollections()) is None
