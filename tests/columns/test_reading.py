"""read_batches: which rows and columns are read, how row groups are divided and pruned, and what is
said about files that cannot be read."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from polars.testing import assert_frame_equal

from pyrite import (
    DAG,
    Instance,
    InvalidDAG,
    JobFailed,
    Pipeline,
    ProcessorContext,
    ProcessorError,
    between,
)
from pyrite import processors as p
from pyrite.collections import MemoryCollections
from pyrite.processors.columns.sources.pruning import unpruned
from pyrite.processors.columns.sources.reading import ReadBatches

CONTEXT = ProcessorContext(
    vertex_name="read",
    local_parallelism=1,
    member_count=1,
    job_id="j",
    execution_id="e",
    collections=MemoryCollections(),
    member_index=0,
    local_index=0,
)
PEOPLE = pa.table({"id": range(100), "name": [f"n{i}" for i in range(100)], "x": [0.5] * 100})


def write(folder: Path, name: str = "a", table: pa.Table = PEOPLE, rows: int = 10) -> Path:
    path = folder / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, row_group_size=rows)
    return path


def batches(glob: Path | str, **options: Any) -> list[pa.RecordBatch]:
    return Pipeline().read_from(p.read_batches(glob, **options)).collect()


def table(glob: Path | str, **options: Any) -> pa.Table:
    return pa.Table.from_batches(batches(glob, **options))


def test_each_row_group_is_a_batch(tmp_path: Path) -> None:
    read = batches(write(tmp_path))
    assert all(type(batch) is pa.RecordBatch for batch in read)
    assert [batch.num_rows for batch in read] == [10] * 10
    assert pa.Table.from_batches(read).sort_by("id").equals(PEOPLE)


@pytest.mark.parametrize("readers", [1, 2, 3, 16])
def test_readers_share_the_row_groups_of_all_files(
    pyr: Instance, tmp_path: Path, readers: int
) -> None:
    write(tmp_path, "a"), write(tmp_path, "b", rows=7), write(tmp_path, "c", rows=1000)
    dag = DAG()
    read = dag.vertex("read", p.read_batches(tmp_path / "*"), local_parallelism=readers)
    dag.edge(between(read, dag.vertex("write", p.write_list("out"))))
    pyr.new_light_job(dag).execute().result(20)
    read_rows = sorted(n for batch in pyr.list("out") for n in batch["id"].to_pylist())
    assert read_rows == sorted([*range(100)] * 3)


def test_columns_are_read_in_the_order_in_which_they_are_named(tmp_path: Path) -> None:
    assert table(write(tmp_path), columns=["x", "id"]).column_names == ["x", "id"]


def test_a_filter_is_applied_to_rows(tmp_path: Path) -> None:
    even = pc.bit_wise_and(pc.field("id"), 1) == 0
    read = table(write(tmp_path), columns=["name"], filter=even)
    assert read.column_names == ["name"]
    assert sorted(read["name"].to_pylist()) == sorted(f"n{i}" for i in range(0, 100, 2))


def test_row_groups_without_rows_that_pass_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_groups, read = [], pq.ParquetFile.read_row_group

    def watched(file: Any, group: int, **options: Any) -> pa.Table:
        read_groups.append(group)
        return read(file, group, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", watched)
    assert table(write(tmp_path), filter=pc.field("id") >= 75)["id"].to_pylist() == [
        *range(75, 100)
    ]
    assert read_groups == [7, 8, 9]


def test_row_groups_of_floats_are_pruned_where_nan_cannot_pass(tmp_path: Path) -> None:
    floats = pa.table({"f": [1.0, math.nan, 3.0, 3.0], "g": [1.0] * 4})
    path = str(write(tmp_path, table=floats, rows=2))
    some = (pc.field("f") > 2.0) & (pc.field("g") == 1.0)
    assert unpruned(path, path, floats.schema, [0, 1], some, ["f", "g"]) == [1]


F, G = pc.field("f"), pc.field("g")


@pytest.mark.parametrize("type", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize(
    "filter",
    [
        F != 1.0,
        F.is_nan(),
        F.is_null(nan_is_null=True),
        ~(F >= 1.0),
        F.isin([math.nan]),
        F.is_nan() & G.is_nan(),
        (F != 1.0) & (pc.field("i") == 0),
        pc.struct_field(pc.field("s"), "f") != 1.0,
    ],
    ids=str,
)
def test_rows_with_nan_are_not_lost_by_pruning(
    tmp_path: Path, type: pa.DataType, filter: Any
) -> None:
    floats = pa.array([1.0, math.nan, 3.0, 3.0], type)
    structs = pa.StructArray.from_arrays([floats], ["f"])
    whole = pa.table({"i": range(4), "f": floats, "g": floats, "s": structs})
    read = table(write(tmp_path, table=whole, rows=2), columns=["i"], filter=filter)
    assert sorted(read["i"].to_pylist()) == whole.filter(filter)["i"].to_pylist()


def test_columns_in_the_names_of_folders_are_strings(tmp_path: Path) -> None:
    write(tmp_path, "country=DE/a")
    write(tmp_path, "country=__HIVE_DEFAULT_PARTITION__/a")
    read = table(tmp_path / "*" / "*", columns=["country", "id"])
    assert read.schema.field("country").type == pa.string()
    assert sorted(map(str, read["country"].to_pylist())) == ["DE"] * 100 + ["None"] * 100
    german = batches(tmp_path / "*" / "*", filter=pc.field("country") == "DE")
    assert sum(batch.num_rows for batch in german) == 100


VALUES: dict[pa.DataType, Any] = {
    pa.int8(): 7,
    pa.uint64(): 1 << 63,
    pa.float32(): 0.5,
    pa.bool_(): True,
    pa.string(): "a",
    pa.large_string(): "a",
    pa.binary(): b"a",
    pa.date32(): date(2024, 2, 29),
    pa.timestamp("ns"): datetime(2024, 2, 29),
    pa.timestamp("us", "Europe/Berlin"): datetime(2024, 2, 29, tzinfo=UTC),
    pa.time64("us"): time(12, 30),
    pa.duration("ms"): timedelta(milliseconds=1),
    pa.decimal128(15, 2): Decimal("1.25"),
    pa.dictionary(pa.int8(), pa.string()): "a",
    pa.list_(pa.int64()): [1, None],
    pa.struct({"a": pa.int64()}): {"a": 1},
    pa.map_(pa.string(), pa.int64()): [("a", 1)],
    pa.null(): None,
}


@pytest.mark.parametrize("type", VALUES, ids=str)
def test_every_type_is_read_as_it_was_written(tmp_path: Path, type: pa.DataType) -> None:
    column = pa.array([VALUES[type], None], type)
    read = table(write(tmp_path, table=pa.table({"v": column, "n": [1, 2]})))
    assert read.schema.field("v").type == type
    assert read["v"].to_pylist() == column.to_pylist()


@pytest.mark.parametrize("filter", [None, pc.field("n") > 1], ids=["all", "some"])
@pytest.mark.parametrize("type", VALUES, ids=str)
def test_frames_of_polars_are_what_polars_makes_of_batches(
    tmp_path: Path, type: pa.DataType, filter: Any
) -> None:
    rows = pa.table({"v": pa.array([VALUES[type], None], type), "n": [1, 2]})
    write(tmp_path, "day=1/a", table=rows)
    step = p.read_batches(tmp_path / "*/*", filter=filter).step
    assert isinstance(step, ReadBatches)
    (frame,), (batch,) = step.frames(CONTEXT, "polars"), step.open(CONTEXT)
    as_polars = frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame)
    assert_frame_equal(as_polars, pl.DataFrame(batch))


def test_polars_reads_row_groups_itself(tmp_path: Path) -> None:
    step = p.read_batches(write(tmp_path), columns=["name"], filter=pc.field("id") >= 85).step
    assert isinstance(step, ReadBatches)
    frames = list(step.frames(CONTEXT, "polars"))
    assert [frame["name"].to_list() for frame in frames] == [
        [f"n{n}" for n in range(85, 90)],
        [f"n{n}" for n in range(90, 100)],
    ]


def test_types_that_polars_lacks_are_read_by_arrow(tmp_path: Path) -> None:
    wide = pa.array([Decimal(10) ** 45, None], pa.decimal256(50, 0))
    path = write(tmp_path, table=pa.table({"k": [1, 1], "d": wide}))
    read = Pipeline().read_from(p.read_batches(path)).group_by("k").aggregate(d=("d", "max"))
    assert read.rows().collect() == [{"k": 1, "d": Decimal(10) ** 45}]
    with pytest.raises(JobFailed, match=r"column 'd' is decimal256\(50, 0\), a type that Polars"):
        Pipeline().read_from(p.read_batches(path)).map_batches(len, format="polars").collect()


def test_a_processor_without_rows_emits_a_batch_that_has_the_columns(tmp_path: Path) -> None:
    write(tmp_path, "a", PEOPLE.slice(0, 0)), write(tmp_path, "b")
    source = p.read_batches(tmp_path / "*", columns=["name"], filter=pc.field("id") < 0)
    (batch,) = source.step.open(CONTEXT)
    assert (batch.num_rows, batch.schema) == (0, pa.schema({"name": pa.string()}))


def test_a_file_without_rows_adds_nothing(tmp_path: Path) -> None:
    write(tmp_path, "a", PEOPLE.slice(0, 0)), write(tmp_path, "b", rows=1000)
    (batch,) = p.read_batches(tmp_path / "*").step.open(CONTEXT)
    assert batch.num_rows == 100


def fails(glob: Path | str, **options: Any) -> str:
    with pytest.raises(JobFailed) as failed:
        batches(glob, **options)
    return str(failed.value)


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert (
        f"vertex 'read_batches' reads column 'nme', but Parquet file '{path}' has no such column; "
        "its columns are id, name, x; did you mean 'name'?"
    ) in fails(path, columns=["id", "nme"])
    text = fails(path, filter=pc.field("nme") == "a")
    assert "filter of vertex 'read_batches', (nme == \"a\"), does not fit" in text
    assert "its columns are id, name, x" in text


def test_a_filter_that_compares_other_types_is_explained(tmp_path: Path) -> None:
    text = fails(write(tmp_path), filter=pc.field("id") == "a")
    assert "filter of vertex 'read_batches'" in text
    assert "(int64, string)" in text


def test_types_that_differ_between_files_are_named(tmp_path: Path) -> None:
    first = write(tmp_path, "a", pa.table({"id": [1], "n": [1]}))
    second = write(tmp_path, "b", pa.table({"id": [1], "n": ["one"]}))
    assert (
        "vertex 'read_batches' reads files whose columns differ: column 'n' is string in "
        f"'{second}' and int64 in '{first}'; write them again with one type"
    ) in fails(tmp_path / "*")
    assert table(tmp_path / "*", columns=["id"])["id"].to_pylist() == [1, 1]


def test_other_encodings_of_the_same_values_fit(tmp_path: Path) -> None:
    for name, type in enumerate([pa.string(), pa.large_string(), pa.null()]):
        write(tmp_path, str(name), pa.table({"v": pa.array([None], type)}))
    write(tmp_path, "d", pa.table({"v": pa.array(["d"]).dictionary_encode()}))
    read = table(tmp_path / "*")
    assert read.schema.field("v").type == pa.string()
    assert sorted(map(str, read["v"].to_pylist())) == ["None"] * 3 + ["d"]


def test_a_column_that_only_some_files_have_is_named(tmp_path: Path) -> None:
    first = write(tmp_path, "a", pa.table({"id": [1]}))
    second = write(tmp_path, "b", pa.table({"id": [1], "more": [1]}))
    assert (
        f"'{second}' has a column 'more', which '{first}' has not; choose columns that all files "
        "have with columns=[...]"
    ) in fails(tmp_path / "*")


def test_what_is_not_a_parquet_file_is_named(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "b.parquet").write_text("id,name\n")
    text = fails(tmp_path / "*")
    assert f"vertex 'read_batches' cannot read '{tmp_path}/b.parquet' as a Parquet file: " in text


@pytest.mark.parametrize("kind", ["arrow", "polars"])
def test_a_row_group_that_is_damaged_is_an_error_of_its_file(tmp_path: Path, kind: Any) -> None:
    path = write(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(200) + whole[204:])
    step = p.read_batches(path).step
    assert isinstance(step, ReadBatches)
    with pytest.raises(ProcessorError, match=f"vertex 'read' cannot read '{path}' as a Parquet"):
        list(step.frames(CONTEXT, kind))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"format": "orc"}, "format of read_batches() must be one of parquet"),
        ({"columns": "id"}, "columns of read_batches() must be a list of at least one name"),
        ({"filter": [("id", "=", 1)]}, "filter of read_batches() must be a pyarrow expression"),
    ],
)
def test_options_are_checked_at_once(options: Any, why: str) -> None:
    with pytest.raises(InvalidDAG, match=re.escape(why)):
        p.read_batches("x", **options)
