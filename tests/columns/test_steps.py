"""map_batches, rows and batches, alone and fused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pyrite import (
    DAG,
    Instance,
    InvalidDAG,
    JobCancelled,
    JobFailed,
    Pipeline,
    Retry,
    between,
    dead_letter,
    instance,
    skip,
)
from pyrite import processors as p
from pyrite.engine.fusion import fuse
from pyrite.engine.plan import plan_topology
from pyrite.pipeline import BatchStage

NUMBERS = pa.record_batch({"n": [1, 2, 3, 4], "s": ["a", "b", None, "d"]})


def stage_of(*batches: pa.RecordBatch) -> BatchStage:
    """A stage with these batches."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    return Pipeline().read_from(rows).batches(batches[0].schema)


@pytest.mark.parametrize(
    ("format", "fn"),
    [
        ("arrow", lambda batch: batch.slice(1, 2)),
        ("arrow", lambda batch: pa.Table.from_batches([batch.slice(1, 1), batch.slice(2, 1)])),
        ("pandas", lambda frame: frame[1:3]),
        ("polars", lambda frame: frame[1:3]),
        ("polars", lambda frame: frame[1:3].to_arrow()),
    ],
)
def test_a_function_gets_and_returns_frames_of_the_format(
    format: Any, fn: Callable[[Any], Any]
) -> None:
    found = stage_of(NUMBERS).map_batches(fn, format).rows().collect()
    assert found == [{"n": 2, "s": "b"}, {"n": 3, "s": None}]


@pytest.mark.parametrize(
    ("format", "kind"),
    [("arrow", pa.RecordBatch), ("pandas", pd.DataFrame), ("polars", pl.DataFrame)],
)
def test_the_frame_has_the_type_of_the_format(format: Any, kind: type) -> None:
    seen: list[type] = []
    stage_of(NUMBERS).map_batches(lambda frame: seen.append(type(frame)), format).collect()
    assert seen == [kind]


@pytest.mark.parametrize(
    ("fn", "columns"),
    [
        (lambda frame: frame.set_index("s"), ["n", "s"]),
        (lambda frame: frame.groupby("s").sum(), ["n", "s"]),
        (lambda frame: frame.set_index(["s", "n"]), ["s", "n"]),
        (lambda frame: frame.set_index(["s", pd.Index(range(4))]), ["n", "s"]),
        (lambda frame: frame.set_index(pd.RangeIndex(4, name="i")), ["n", "s", "i"]),
        (lambda frame: frame.set_index(pd.Index(list("abcd"))), ["n", "s"]),
    ],
)
def test_named_levels_of_the_index_of_pandas_become_columns(
    fn: Callable[[Any], Any], columns: list[str]
) -> None:
    (batch,) = stage_of(NUMBERS).map_batches(fn, "pandas").collect()
    assert batch.schema.names == columns
    assert set(batch["n"].to_pylist()) <= {1, 2, 3, 4}


def test_none_is_no_batch() -> None:
    assert stage_of(NUMBERS).map_batches(lambda batch: None).collect() == []


@pytest.mark.parametrize(
    ("format", "made", "says"),
    [
        ("arrow", 1, "must return a pyarrow RecordBatch or Table, .* or None; got 1 of type"),
        ("polars", pl.LazyFrame({"a": [1]}), r"call \.collect\(\) on it"),
        ("pandas", pd.Series([1]), "must return a pandas DataFrame"),
        ("pandas", pd.DataFrame({"a": [1, "x"]}), "column a"),
        (
            "pandas",
            pd.DataFrame([[1, 2]], columns=["a", "a"]),
            "more than one column, .* named 'a'",
        ),
        ("pandas", pd.DataFrame({"a": [1]}, pd.Index([1], name="a")), "level of its index, is nam"),
        ("pandas", pd.DataFrame({"a": pd.arrays.SparseArray([1])}), "Sparse pandas data"),
        ("polars", [1], "must return a polars DataFrame"),
        ("polars", pl.DataFrame({"a": [object()]}), "column 'a' is Object, which is not a type of"),
        (
            "polars",
            pl.DataFrame({"a": [1]}, {"a": pl.Int128}),
            "column 'a' is Int128, which is not",
        ),
        (
            "polars",
            pl.DataFrame({"a": [[1]]}, {"a": pl.List(pl.Int128)}),
            r"is List\(Int128\), whi",
        ),
    ],
)
def test_what_is_no_frame_is_an_error_with_vertex_and_function(
    format: Any, made: Any, says: str
) -> None:
    stage = stage_of(NUMBERS).map_batches(lambda frame: made, format, name="odd")
    with pytest.raises(JobFailed, match=says) as raised:
        stage.collect()
    assert "vertex 'odd'" in str(raised.value)
    assert "test_steps.py line" in str(raised.value)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InvalidDAG, match="must be one of arrow, pandas, polars; got 'spark'"):
        p.map_batches(len, format="spark")  # type: ignore[arg-type]


def test_an_item_that_is_no_batch_is_an_error_that_names_the_door() -> None:
    dag = DAG()
    read, half = dag.vertex("read", p.read_items([1])), dag.vertex("half", p.map_batches(len))
    dag.edge(between(read, half))
    with (
        instance() as pyr,
        pytest.raises(JobFailed, match=r"vertex 'half' .* batches of rows.*p\.batches\(schema\)"),
    ):
        pyr.new_light_job(dag).execute().result()


def test_fused_vertices_hand_frames_on_as_they_are() -> None:
    seen: list[Any] = []

    def first(frame: pl.DataFrame) -> pl.DataFrame:
        seen.append(frame)
        return frame

    def second(frame: pl.DataFrame) -> None:
        seen.append(frame)

    stage_of(NUMBERS).map_batches(first, "polars").map_batches(second, "polars").collect()
    assert seen[0] is seen[1]


def test_columnar_vertices_are_fused_with_each_other_only() -> None:
    pipe = Pipeline()
    batches = pipe.read_from([(1, "a")]).map(lambda row: row).batches(NUMBERS.schema)
    groups = batches.map_batches(lambda b: b).group_by("s").aggregate(n=("n", "sum"))
    groups.rows().map(len).write_to(p.write_list("out"))
    dag = pipe.to_dag()
    topology = plan_topology(dag, member_count=1, default_parallelism=1)
    stretches = fuse(topology, {vertex.name: vertex.supplier for vertex in dag.vertices})
    assert [stretch.label for stretch in stretches] == [
        "read_items + map",
        "batches + map_batches + aggregate-combine + aggregate + rows",
        "map-2 + write_list",
    ]


def test_columnar_processors_have_a_thread_of_their_own() -> None:
    threads: set[str] = set()
    stage = stage_of(NUMBERS).map_batches(lambda b: threads.add(threading.current_thread().name))
    with instance(cooperative_threads=1) as pyr:
        stage.write_to(p.noop())
        pyr.new_light_job(stage.pipeline).execute().result()
    assert not any("cooperative" in name for name in threads)


def test_metrics_count_rows() -> None:
    stage = stage_of(NUMBERS).map_batches(lambda batch: batch.slice(1), name="cut")
    stage.map_batches(lambda batch: batch.slice(2), name="again").write_to(p.noop())
    with instance() as pyr:
        execution = pyr.new_light_job(stage.pipeline).execute()
        execution.result()
        metrics = execution.metrics()
    counts = {name: (m["received"], m["emitted"]) for name, m in metrics.items()}
    assert counts["batches"] == (4, 4)
    assert counts["cut"] == (4, 3)
    assert counts["again"] == (3, 1)
    assert counts["noop"] == (1, 0)


def test_rows_that_raise_are_skipped_one_by_one() -> None:
    def check(frame: pl.DataFrame) -> pl.DataFrame:
        if frame["n"].is_in([2, 3]).any():
            raise ValueError("two and three")
        return frame

    stage = stage_of(NUMBERS).map_batches(check, "polars", on_error=skip())
    assert [row["n"] for row in stage.rows().collect()] == [1, 4]


def test_a_row_that_raises_is_a_dead_letter_with_the_row() -> None:
    def check(batch: pa.RecordBatch) -> pa.RecordBatch:
        if None in batch.column("s").to_pylist():
            raise ValueError("no s")
        return batch

    pipe = stage_of(NUMBERS).map_batches(
        check, name="check", on_error=dead_letter(p.write_list("bad"))
    )
    pipe.write_to(p.write_list("good"))
    with instance() as pyr:
        pyr.new_light_job(pipe.pipeline).execute().result()
        (letter,) = pyr.list("bad")
        good = [row for batch in pyr.list("good") for row in batch.to_pylist()]
    assert (letter.vertex, letter.item) == ("check", {"n": 3, "s": None})
    assert [row["n"] for row in good] == [1, 2, 4]


def test_too_many_bad_rows_fail_the_job() -> None:
    def never(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError("never")

    stage = stage_of(NUMBERS).map_batches(never, on_error=skip(at_most=3))
    with pytest.raises(JobFailed, match="could not process 4 items"):
        stage.collect()


def test_a_batch_is_tried_again_as_a_whole() -> None:
    sizes: list[int] = []

    def unsteady(batch: pa.RecordBatch) -> pa.RecordBatch:
        sizes.append(batch.num_rows)
        if len(sizes) < 3:
            raise ConnectionError("not yet")
        return batch

    stage = stage_of(NUMBERS).map_batches(unsteady, retry=Retry(3, wait=0.001))
    assert len(stage.rows().collect()) == 4
    assert sizes == [4, 4, 4]


@pytest.mark.parametrize(
    "make",
    [lambda: p.group_batches(["n"], {"m": ("n", "sum")}), lambda: p.sort_batches(["n"]), p.rows],
)
def test_steps_of_many_rows_have_no_on_error(make: Callable[[], Any]) -> None:
    dag = DAG()
    read = dag.vertex("read", p.read_items([NUMBERS]))
    dag.edge(between(read, dag.vertex("step", make(), on_error=skip())))
    with instance() as pyr, pytest.raises(InvalidDAG, match="works on many rows together"):
        pyr.new_light_job(dag).execute()


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (("x", "a"), "cannot put 'x' of type str into column 'n' of type int64"),
        ({"n": 1, "m": 2}, "a dict with no other columns"),
        ((1, "a", 2), "a tuple with a value for each"),
        ({"n": 1.5}, "cannot put 1.5 of type float into column 'n'"),
        ({"n": 2**63}, "cannot put 9223372036854775808 of type int into column 'n'"),
    ],
)
def test_an_item_that_fits_no_row_is_an_error(item: Any, says: str) -> None:
    stage = Pipeline().read_from([(1, "a"), item]).batches(NUMBERS.schema, name="door")
    with pytest.raises(JobFailed, match=says) as raised:
        stage.collect()
    assert raised.value.item == item


def test_items_that_fit_no_row_are_skipped() -> None:
    stage = Pipeline().read_from([1, "x", 2]).batches({"n": "int64"}, on_error=skip())
    assert stage.rows().collect() == [{"n": 1}, {"n": 2}]


def test_rows_keep_nested_types_and_the_order_of_columns() -> None:
    schema = pa.schema(
        [("z", pa.list_(pa.int64())), ("a", pa.struct([("b", pa.map_(pa.string(), pa.int64()))]))]
    )
    row = {"z": [1, 2], "a": {"b": {"x": 1}}}
    (found,) = Pipeline().read_from([row]).batches(schema).rows().collect()
    assert found == row
    assert list(found) == ["z", "a"]


def test_many_items_become_several_batches() -> None:
    batches = Pipeline().read_from(range(150_000)).batches({"n": "int64"}).collect()
    assert sum(batch.num_rows for batch in batches) == 150_000
    assert 2 <= len(batches) <= 4
    assert [n for batch in batches for n in batch.column("n").to_pylist()] == list(range(150_000))


@pytest.mark.parametrize("rows", [[], [(1, "a")]])
def test_empty_and_single_rows(rows: list[Any]) -> None:
    batches = Pipeline().read_from(rows).batches(NUMBERS.schema)
    assert batches.rows().collect() == [dict(zip(("n", "s"), row)) for row in rows]
    groups = batches.group_by("s").aggregate(n=("n", "sum"))
    assert groups.rows().collect() == [{"s": s, "n": n} for n, s in rows]


def test_batches_that_are_items_pass_the_door() -> None:
    items = [NUMBERS, (9, "z"), NUMBERS.select(["s", "n"])]
    found = Pipeline().read_from(items).batches(NUMBERS.schema).rows().collect()
    assert [row["n"] for row in found] == [1, 2, 3, 4, 9, 1, 2, 3, 4]


def test_a_batch_with_other_columns_does_not_pass_the_door() -> None:
    stage = Pipeline().read_from([NUMBERS.select(["n"])]).batches(NUMBERS.schema, name="door")
    with pytest.raises(JobFailed, match="vertex 'door': there is no column 's'"):
        stage.collect()


def test_a_failed_batch_can_be_replayed() -> None:
    def bad(frame: pl.DataFrame) -> pl.DataFrame:
        raise ValueError(f"{frame.height} rows")

    with pytest.raises(JobFailed) as raised:
        stage_of(NUMBERS).map_batches(bad, "polars").collect()
    with pytest.raises(ValueError, match="4 rows"):
        raised.value.replay()


def test_a_method_for_items_names_the_door() -> None:
    with pytest.raises(AttributeError, match=r"call \.rows\(\) first, as in stage\.rows\(\)\.map"):
        stage_of(NUMBERS).map(len)
    with pytest.raises(AttributeError, match=r"has no method mapp\(\)$"):
        stage_of(NUMBERS).mapp(len)


def test_two_columns_of_one_name_make_no_dict() -> None:
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])
    stage = stage_of(NUMBERS).map_batches(lambda batch: twice).rows()
    with pytest.raises(JobFailed, match="vertex 'rows': there are several columns 'n'"):
        stage.collect()


def test_a_cancel_is_seen_while_nothing_is_emitted(pyr: Instance) -> None:
    begun = threading.Event()

    def drop(batch: pa.RecordBatch) -> None:
        begun.set()

    pipe = Pipeline()
    many = pipe.read_from(range(40_000)).map(lambda n: (1, n)).batches({"k": int, "n": int})
    few = pipe.read_from(range(40_000)).map(lambda n: (1, n)).batches({"k": int, "m": int})
    many.join(few, on="k").map_batches(drop).write_to(p.noop())  # 1.6 billion rows
    execution = pyr.new_light_job(pipe).execute()
    assert begun.wait(30)
    execution.cancel()
    with pytest.raises(JobCancelled):
        execution.result(5)


@pytest.mark.parametrize("repeated", [1, 100])
def test_items_with_more_values_than_a_dictionary_has_numbers_become_several_batches(
    repeated: int,
) -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    items = [f"w{number // repeated}" for number in range(300 * repeated)]
    made = Pipeline().read_from(items).batches({"word": kind}).collect()
    assert [word for batch in made for word in batch["word"].to_pylist()] == items
    assert {batch.schema.field("word").type for batch in made} == {kind}


def test_a_batch_with_other_columns_can_be_skipped_at_the_door() -> None:
    items = [NUMBERS.select(["n"]), NUMBERS]
    stage = Pipeline().read_from(items).batches(NUMBERS.schema, on_error=skip())
    assert [row["n"] for row in stage.rows().collect()] == [1, 2, 3, 4]
