"""A preview runs a sample of the sources, reads no further, and writes nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pyrite import (
    DAG,
    AbstractProcessor,
    Instance,
    InvalidDAG,
    JobFailed,
    Pipeline,
    PyriteError,
    between,
    dead_letter,
    service,
)
from pyrite import instance as open_instance
from pyrite import processors as p
from pyrite.cli import app
from pyrite.pipeline.looking.types import types_of


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> None:
    """Turns the check off: the Spark instance is shared by several tests, so its threads stay."""


def test_each_vertex_has_items_types_and_how_many_come_out_per_item() -> None:
    preview = Pipeline().read_from(["a b", "c d", "e"]).flat_map(str.split).map(ord).preview(2)
    assert [vertex.name for vertex in preview] == ["read_items", "flat_map", "map"]
    assert preview["flat_map"].items == ("a", "b", "c", "d")
    assert preview["flat_map"].types == "str"
    assert preview["flat_map"].per_item == 2
    assert (preview["map"].received, preview["map"].emitted) == (4, 4)
    assert preview["read_items"].per_item is None


def test_a_generator_is_read_no_further_and_a_job_still_gets_all_of_it() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for n in range(100):
            read.append(n)
            yield n

    stage = Pipeline().read_from(numbers())
    assert stage.preview(3)["read_items"].items == (0, 1, 2)
    assert stage.preview(2)["read_items"].emitted == 2
    assert read == [0, 1, 2]
    assert stage.collect() == list(range(100))


def test_endless_sources_and_endless_flat_maps_end() -> None:
    endless = Pipeline().read_from(itertools.count()).flat_map(lambda n: itertools.repeat(n))
    assert endless.limit(2).preview(5)["limit"].items == (0, 0)
    preview = endless.preview(1)
    assert preview["flat_map"].is_cut
    assert "The preview was stopped when 'flat_map' had emitted 10,001 items" in str(preview)


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "large.txt"
    with file.open("wb") as large:
        large.write(b"first\nsecond\n" * 500_000)
        large.truncate(10 << 30)  # the rest is one long line: who reads that far needs 10 GB
    preview = Pipeline().read_from(p.read_files(file)).preview(2)
    assert preview["read_files"].items == ("first", "second")


class Numbers(AbstractProcessor):
    """An endless source."""

    def __init__(self) -> None:
        self._numbers = itertools.count()

    def complete(self) -> bool:
        return self.emit_cooperatively(self._numbers)


def test_a_source_processor_of_ones_own_stops_early() -> None:
    preview = Pipeline().read_from(Numbers).map(str).preview(4)
    assert preview["numbers"].emitted == 4
    assert preview["map"].items == ("0", "1", "2", "3")


class Writes(AbstractProcessor):
    written: list[Any] = []

    def try_process_0(self, item: Any) -> None:
        self.written.append(item)


@pytest.mark.parametrize("kind", ["files", "processor"])
def test_sinks_write_nothing(kind: str, tmp_path: Path) -> None:
    pipe = Pipeline()
    sink = p.write_files(tmp_path / "out") if kind == "files" else Writes
    pipe.read_from(["a"]).write_to(sink, name="sink")
    preview = pipe.preview(5)
    assert preview["sink"].items == ("a",)
    assert (preview["sink"].received, preview["sink"].emitted) == (1, 0)
    assert not list(tmp_path.iterdir())
    assert not Writes.written


def test_functions_that_change_items_do_not_change_the_users_own() -> None:
    orders = [{"n": 1}]
    changed = Pipeline().read_from(orders).map(lambda o: o.update(n=2) or o)
    assert changed.preview()["map"].items == ({"n": 2},)
    assert changed.preview()["read_items"].shown == ("{'n': 1}",)
    assert orders == [{"n": 1}]


def test_named_collections_are_those_of_an_instance() -> None:
    pairs = Pipeline().read_from(p.read_map("ages"))
    with open_instance() as pyr:
        pyr.map("ages")["ann"] = 7
        assert pairs.preview(on=pyr)["read_map"].items == (("ann", 7),)
    assert pairs.preview()["read_map"].items == ()


def test_both_branches_of_a_split_are_counted_but_a_fork_only_once() -> None:
    pipe = Pipeline()
    odd, even = pipe.read_from(range(5)).split(lambda n: n % 2)
    odd.write_to(p.noop())
    even.map(str).write_to(p.noop())
    even.map(float).write_to(p.noop())
    preview = pipe.preview()
    assert preview["split"].emitted == 5
    assert preview["split"].per_item == 1


def test_a_dag_of_ones_own_is_previewed_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "flow.py"
    file.write_text(
        "from pyrite import DAG, between, processors as p\n"
        "def make(start: int) -> DAG:\n"
        "    dag = DAG()\n"
        "    a = dag.vertex('a', p.read_items(range(start, 100)))\n"
        "    b = dag.vertex('b', p.write_files('out'))\n"
        "    return dag.edge(between(a, b))\n"
    )
    arguments = ["show", f"{file}:make", "--set", "start=7", "--preview", "2"]
    assert CliRunner().invoke(app, arguments).output == (
        "vertex  in  out  per item  type  items\n"
        "a             2            int   7, 8\n"
        "b        2                 int   7, 8\n"
    )


def test_a_function_that_raises_is_named_with_its_vertex_edge_item_and_line() -> None:
    stage = Pipeline().read_from([1, 0]).map(lambda n: 1 / n)
    with pytest.raises(JobFailed, match=r"the preview failed in vertex 'map'.*line \d+\)$") as info:
        stage.filter(bool).preview()
    assert (info.value.vertex, info.value.item) == ("map", 0)
    assert info.value.edge == "'read_items -> map'"
    assert isinstance(info.value.__cause__, ZeroDivisionError)


def test_a_bad_key_is_the_fault_of_the_vertex_that_sends_it() -> None:
    dag = DAG()
    a = dag.vertex("a", p.read_items(["x"]))
    b = dag.vertex("b", p.noop())
    dag.edge(between(a, b).partitioned(key=lambda item: None))
    from pyrite.pipeline import run
    from pyrite.pipeline.looking.preview import previewed

    with pytest.raises(JobFailed) as info:
        previewed(dag, 1, run.here)
    assert (info.value.vertex, info.value.edge) == ("a", "'a -> b'")


@pytest.mark.parametrize("n", [0, -1, True, "3"])
def test_the_number_of_items_is_checked(n: Any) -> None:
    with pytest.raises(InvalidDAG, match=r"n of preview\(\) in test_preview.py line \d+ must be"):
        Pipeline().read_from([1]).preview(n)


def test_a_preview_says_which_vertex_was_meant() -> None:
    with pytest.raises(PyriteError, match="did you mean 'map'"):
        Pipeline().read_from([1]).map(str).preview()["mapp"]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], ""),
        ([1, "a"], "int | str"),
        ([("a", 1), ("b", None)], "tuple[str, int | None]"),
        ([(1,), (1, 2)], "tuple[int, ...]"),
        ([()], "tuple[()]"),
        ([{"a": [1.5]}], "dict[str, list[float]]"),
        ([[], {1, 2}], "list | set[int]"),
        ([1, 1.5, "a", b"", (), []], "int | float | str | bytes | …"),
    ],
)
def test_types_are_written_as_in_python(items: list[Any], expected: str) -> None:
    assert types_of(items) == expected


def test_bad_records_are_counted_and_no_dead_letter_is_written(tmp_path: Path) -> None:
    letters = dead_letter(p.write_files(tmp_path / "bad", "jsonl"), at_most=0)
    stage = Pipeline().read_from(["1", "x", "3"]).map(int, on_error=letters)
    preview = stage.filter(bool).preview()
    assert (preview["map"].items, preview["map"].skipped) == ((1, 3), 1)
    assert str(preview).splitlines()[2].split() == ["map", "3", "2", "1", "0.667", "int", "1,", "3"]
    assert not list(tmp_path.iterdir())


def test_async_maps_and_services_are_previewed() -> None:
    async def doubled(n: int) -> int:
        return 2 * n

    stage = Pipeline().read_from(itertools.count()).map(doubled)
    own = stage.map_with(service(lambda: {"add": 1}), lambda client, n: n + client["add"])
    assert own.preview(3)["map_with"].items == (1, 3, 5)


def test_a_dataframe_is_read_no_further(local_spark: Instance) -> None:
    frame = local_spark.spark().range(1000)
    preview = Pipeline().read_from(p.read_spark(frame)).map(lambda row: row["id"]).preview(2)
    assert preview["read_spark"].emitted == 2
    assert preview["map"].types == "int"
