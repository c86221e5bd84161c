"""Parquet: one schema for all files of a job, given or found from all rows; rows read by row
groups."""

from __future__ import annotations

import datetime as dt
import decimal
import pickle
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite import Instance, InvalidDAG, JobFailed
from pyrite import processors as p
from pyrite.errors import ProcessorError
from pyrite.processors.files.formats import Written
from pyrite.processors.files.lines import Range, ranges_of
from pyrite.processors.files.parquet import Parquet, writing
from pyrite.processors.files.parquet.ddl import schema_of
from pyrite.processors.files.parquet.kinds import arrow_schema, fields_and_columns
from pyrite.processors.files.parquet.reading import values_of
from pyrite.processors.files.parquet.row_groups import row_groups_in
from pyrite.processors.files.storage import LocalStorage
from pyrite.processors.loops.steps import BadItem
from tests.processors.files.jobs import copy, copying, read_back, visible
from tests.processors.files.test_kinds import rows_that_nearly_fit

UTC_NOON = dt.time(12, tzinfo=dt.UTC)


def written_by(
    folder: Path, parts: list[list[dict[str, Any]]], schema: pa.Schema | None = None
) -> list[pa.Table]:
    """The files that writers make of their parts of the rows."""
    format, storage = Parquet(schema=schema), LocalStorage()
    said: list[Written] = []
    for number, rows in enumerate(parts):
        writer = format.writer(storage, str(folder), f"part-{number:05d}-0.parquet", "write")
        with closing(writer):
            for start in range(0, len(rows), 3):
                writer.write(rows[start : start + 3])
            said.append(writer.complete())
    settled = format.settled(storage, str(folder), "write", said)
    return [pq.read_table(folder / each.name) for each in settled]


@given(
    rows=st.lists(rows_that_nearly_fit, min_size=1, max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=3),
    at_a_time=st.integers(1, 5),
    per_group=st.integers(1, 5),
)
def test_the_table_does_not_depend_on_how_rows_fall_into_files_and_row_groups(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, Any]],
    cuts: list[int],
    at_a_time: int,
    per_group: int,
) -> None:
    rows = [*rows, {"x": 1}]
    limits = [0, *sorted(cuts), len(rows)]
    parts = [rows[one:two] for one, two in pairwise(limits)]
    folder = tmp_path_factory.mktemp("parquet")
    with pytest.MonkeyPatch.context() as patched:
        whole = outcome(folder, [rows])
        patched.setattr(writing, "ROWS_AT_A_TIME", at_a_time)
        patched.setattr(writing, "ROWS_PER_GROUP", per_group)
        assert outcome(folder, parts) == whole


def outcome(folder: Path, parts: list[list[dict[str, Any]]]) -> Any:
    """The schema, and the rows in any order; or the error."""
    try:
        tables = written_by(folder, parts)
    except ProcessorError:
        return "refused"
    assert len({table.schema for table in tables}) == 1
    rows = [row for table in tables for row in table.to_pylist()]
    return tables[0].schema, sorted(map(repr, rows))


@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize(
    ("rows", "types"),
    [
        ([{"a": 1}, {"a": 2.5}, {"a": 3}], ["double"]),
        ([{"a": 1}, {"a": 2}, {"a": 3}], ["int64"]),
        ([{"a": None}, {"a": None}, {"a": "x"}], ["string"]),
        ([{"a": None}, {"a": None}, {"a": None}], ["null"]),
        ([{}, {"a": 1}, {}], ["int64"]),
        ([{"b": 1}, {"a": "x", "b": 2}, {"a": None}], ["string", "int64"]),
        ([{"a": []}, {"a": [1.5]}, {"a": [1]}], ["list<element: double>"]),
    ],
)
def test_one_schema_fits_all_rows(
    pyr: Instance, tmp_path: Path, rows: list[Any], types: list[str], parallelism: int
) -> None:
    sink = p.write_files(tmp_path, format="parquet")
    copy(pyr, p.read_items(rows), sink, parallelism=parallelism)
    schemas = {str(pq.read_schema(tmp_path / name).remove_metadata()) for name in visible(tmp_path)}
    assert len(schemas) == 1
    (name, *_) = visible(tmp_path)
    assert [str(field.type) for field in pq.read_schema(tmp_path / name)] == types
    back = read_back(pyr, tmp_path / "*", "parquet")
    names = sorted({name for row in rows for name in row})
    wanted = [{name: row.get(name) for name in names} for row in rows]
    assert sorted(map(str, map(canonical, back))) == sorted(map(str, map(canonical, wanted)))


def canonical(row: dict[str, Any]) -> Any:
    """A row as text, with numbers that are equal written alike."""
    return [
        (name, [float(n) for n in value])
        if isinstance(value, list)
        else (name, float(value) if isinstance(value, int) else value)
        for name, value in sorted(row.items())
    ]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_types_that_cannot_be_united_are_refused_with_field_and_item(
    pyr: Instance, tmp_path: Path, parallelism: int
) -> None:
    rows = [{"a": {"b": 1}, "c": 1}, {"a": {"b": "x"}, "c": 2}]
    sink = p.write_files(tmp_path / "out", format="parquet")
    message = r"vertex 'write' cannot write field 'a.b' of an item to Parquet, because it is str "
    message += r"there and int in other rows, such as \{'a': \{'b': 1\}"
    with pytest.raises(JobFailed, match=message) as failed:
        copy(pyr, p.read_items(rows), sink, parallelism=parallelism)
    assert (failed.value.vertex, failed.value.item) == ("write", rows[1])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"a": 2**63}, "cannot write field 'a' of an item"),
        ({"a": "\ud800"}, "cannot write field 'a' of an item.*surrogates not allowed"),
        ({"a": {}}, "field 'a' of an item to Parquet: it is an empty dict"),
        ({"a": object()}, "field 'a' of an item to Parquet: Parquet cannot store <object"),
        ({1: 2}, "names of fields must be strings, not 1"),
        ({"a": [{"b": decimal.Decimal("nan")}]}, r"field 'a\[\].b' of an item"),
        ({"a": UTC_NOON}, "field 'a' of an item to Parquet: it is a time with a time zone"),
        ({"a": [pd.Timestamp(1, unit="ns")]}, r"field 'a\[\]' of an item.*it has nanoseconds"),
        ({"a": pd.Timedelta(1, unit="ns")}, "field 'a' of an item.*it has nanoseconds"),
        ({"a": pd.NaT}, "field 'a' of an item to Parquet: it is NaT; use None"),
        ({"a": np.datetime64("2020-01-01")}, "field 'a' of an item.*cannot store np.datetime64"),
    ],
)
def test_an_item_that_parquet_cannot_store_is_named(
    pyr: Instance, tmp_path: Path, item: Any, message: str
) -> None:
    with pytest.raises(JobFailed, match=message) as failed:
        copy(pyr, p.read_items([{"x": 1}, item]), p.write_files(tmp_path, format="parquet"))
    assert (failed.value.vertex, failed.value.item) == ("write", item)


def test_a_number_that_a_float_cannot_hold_is_not_rounded(pyr: Instance, tmp_path: Path) -> None:
    rows = [{"a": 2**53 + 1}, {"a": 0.5}]
    sink = p.write_files(tmp_path, format="parquet")
    for parallelism in (1, 2):
        with pytest.raises(JobFailed, match=r"field 'a'.*9007199254740993"):
            copy(pyr, p.read_items(rows), sink, parallelism=parallelism)


def test_an_item_that_does_not_fit_is_found_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[Any] = [{**{f"c{i}": i for i in range(20)}, "x": n} for n in range(4096)]
    rows[0]["x"], rows[-1]["x"] = 2**60 + 1, 1.5
    made: list[Any] = []

    def counted(fields: Any) -> pa.Schema:
        made.append(fields)
        return arrow_schema(fields)

    monkeypatch.setattr(writing, "arrow_schema", counted)
    writer = Parquet().writer(LocalStorage(), str(tmp_path), "part-00000-0.parquet", "write")
    with closing(writer), pytest.raises(BadItem, match="field 'x' of an item") as bad:
        writer.write(rows)
    assert bad.value.item == rows[0]
    assert len(made) < 5


@pytest.mark.parametrize(
    "parts",
    [
        [[{"a": 1}, {"b": None}], [{"b": 1}], [{"b": "x"}]],
        [[{"a": 1}, {"b": None}, {"b": 1}], [{"b": "x"}]],
        [[{"a": 1}, {"b": None}, {"b": 1}, {"b": "x"}]],
    ],
)
def test_the_row_that_an_error_names_has_the_field(tmp_path: Path, parts: list[Any]) -> None:
    with pytest.raises(BadItem, match=r"int in other rows, such as \{'b': 1\};.*: \{'b': 'x'\}"):
        written_by(tmp_path, parts)


def test_the_report_of_a_writer_is_small_even_if_rows_are_large(tmp_path: Path) -> None:
    writer = Parquet().writer(LocalStorage(), str(tmp_path), "part-00000-0.parquet", "write")
    with closing(writer):
        writer.write([{"text": "x" * 1_000_000, "n": 1}])
        report = writer.complete()
    assert len(pickle.dumps(report)) < 10_000


def test_few_rows_are_held_at_a_time_if_they_are_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "BYTES_AT_A_TIME", 10_000)
    taken: list[int] = []

    def counted(rows: list[Any]) -> Any:
        taken.append(len(rows))
        return fields_and_columns(rows)

    monkeypatch.setattr(writing, "fields_and_columns", counted)
    written_by(tmp_path, [[{"text": "x" * 1000}] * 100 + [{"text": "x"}] * 10_000])
    assert max(taken[:9]) <= 33
    assert sum(taken[3:9]) <= 6 * 12
    assert taken[-2] >= 1024


def test_rows_without_any_field_are_refused(pyr: Instance, tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match="wrote 2 rows and none of them has a field"):
        copy(pyr, p.read_items([{}, {}]), p.write_files(tmp_path, format="parquet"))
    copy(pyr, p.read_items([]), p.write_files(tmp_path, format="parquet"), parallelism=2)
    assert read_back(pyr, tmp_path / "*", "parquet") == []


def test_a_given_schema_is_the_schema(pyr: Instance, tmp_path: Path) -> None:
    rows = [{"word": "a"}, {"n": 2}, {}]
    sink = p.write_files(tmp_path, format="parquet", schema="word string, n double")
    copy(pyr, p.read_items(rows), sink, parallelism=2)
    schema = pa.schema([("word", pa.string()), ("n", pa.float64())])
    assert [pq.read_schema(tmp_path / name) for name in visible(tmp_path)] == [schema, schema]
    back = read_back(pyr, tmp_path / "*", "parquet")
    assert {"word": "a", "n": None} in back
    assert {"word": None, "n": 2.0} in back


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"n": 1, "word": "x", "m": 2}, "field 'm' of an item to Parquet: the schema has no such"),
        ({"n": "x"}, "field 'n' of an item"),
        ({"word": "x"}, "field 'n' of an item to Parquet: it is None, and the schema says"),
    ],
)
def test_an_item_that_a_given_schema_does_not_fit_is_named(
    pyr: Instance, tmp_path: Path, item: Any, message: str
) -> None:
    sink = p.write_files(tmp_path, format="parquet", schema="n long not null, word string")
    with pytest.raises(JobFailed, match=message) as failed:
        copy(pyr, p.read_items([{"n": 1}, item]), sink)
    assert failed.value.item == item


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ("long", 1.5, "field 'n' .*the schema says int64, which would make 1 of 1.5"),
        ("long", np.float64(1.5), "would make 1 of"),
        ("double", True, "would make 1.0 of True"),
        ("float", 1e300, "would make inf of 1e.300"),
        ("date", dt.datetime(2020, 1, 1, 12), "would make datetime.date"),
        ("date", 5, "would make datetime.date"),
        ("string", b"x", "would make 'x' of b'x'"),
        ("timestamp", dt.datetime(2020, 1, 1), "it has no time zone, and the schema.* one"),
        ("timestamp_ntz", dt.datetime(2020, 1, 1, tzinfo=dt.UTC), "has a time zone, .* none"),
        ("timestamp_ntz", pd.Timestamp(1, unit="ns"), "field 'n' .*would make"),
        (pa.timestamp("s"), dt.datetime(2020, 1, 1, 1, 1, 1, 5), "would make"),
        (pa.time64("us"), UTC_NOON, "it has a time zone"),
        ("struct<x: long>", {"x": 1, "y": 2}, "field 'n.y' .*the schema has no such field"),
        ("struct<x: long not null>", {"x": None}, "field 'n.x' .*it is None, and the schema says"),
        ("array<struct<x: long>>", [{"x": 1.5}], r"field 'n\[\].x' .*would make 1 of 1.5"),
        ("map<string, long>", {"x": 1.5}, "field 'n.{}' .*would make 1 of 1.5"),
        ("array<long>", "12", "it is '12'"),
        ("struct<x: long>", [("x", 1)], "it is .*'x', 1"),
    ],
)
def test_a_value_that_a_given_schema_would_change_is_refused(
    pyr: Instance, tmp_path: Path, schema: Any, value: Any, message: str
) -> None:
    given_schema = f"n {schema}" if isinstance(schema, str) else pa.schema([("n", schema)])
    sink = p.write_files(tmp_path, format="parquet", schema=given_schema)
    with pytest.raises(JobFailed, match=message) as no:
        copy(pyr, p.read_items([{"n": None}, {"n": value}]), sink)
    assert no.value.item == {"n": value}


@pytest.mark.parametrize(
    ("schema", "value", "stored"),
    [
        (pa.int32(), 1.0, 1),
        (pa.int64(), np.int8(3), 3),
        (pa.float32(), 0.5, 0.5),
        (pa.float32(), 3, 3.0),
        (pa.float32(), float("inf"), float("inf")),
        (pa.timestamp("s"), dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1)),
        (pa.timestamp("ns"), pd.Timestamp(1, unit="ns"), pd.Timestamp(1, unit="ns")),
        (pa.timestamp("us"), np.datetime64("2020-01-01", "us"), dt.datetime(2020, 1, 1)),
        (pa.list_(pa.int64()), np.array([1, 2]), [1, 2]),
        (pa.list_(pa.int64()), {1}, [1]),
        (pa.map_(pa.string(), pa.int64()), {"a": 1}, [("a", 1)]),
        (pa.decimal128(5, 2), 1, decimal.Decimal(1)),
        (pa.dictionary(pa.int32(), pa.string()), "x", "x"),
    ],
)
def test_a_value_that_a_given_schema_holds_exactly_is_stored(
    tmp_path: Path, schema: pa.DataType, value: Any, stored: Any
) -> None:
    (table,) = written_by(tmp_path, [[{"n": value}, {}]], pa.schema([("n", schema)]))
    assert table.to_pylist() == [{"n": stored}, {"n": None}]


def test_schemas_as_text() -> None:
    text = (
        "a long NOT NULL, `b c` decimal(12, 2), d array<struct<x: int, y: map<string,double>>>, "
        "t timestamp, u timestamp_ntz"
    )
    inner = pa.struct([("x", pa.int32()), ("y", pa.map_(pa.string(), pa.float64()))])
    assert schema_of(text) == pa.schema(
        [
            pa.field("a", pa.int64(), nullable=False),
            ("b c", pa.decimal128(12, 2)),
            ("d", pa.list_(inner)),
            ("t", pa.timestamp("us", "UTC")),
            ("u", pa.timestamp("us")),
        ]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schema": "a long"}, "schema of write_files.. is for parquet files only"),
        ({"format": "parquet", "schema": "a lung"}, "instead of 'lung'"),
        ({"format": "parquet", "schema": "a long b"}, "should have ',' or the end, and has 'b'"),
        ({"format": "parquet", "schema": "a array<long"}, "should have '>', and has the end"),
        ({"format": "parquet", "schema": ""}, "should have the name of a field, and has the end"),
        ({"format": "parquet", "schema": "a long, a long"}, "each name once"),
        ({"format": "parquet", "schema": "a-b long"}, "backquotes"),
        ({"format": "parquet", "schema": ["a"]}, "must be a pyarrow.Schema or a string"),
        ({"format": "parquet", "schema": pa.schema([("a", pa.struct([]))])}, "cannot be stored"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_at_once(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidDAG, match=message):
        p.write_files("out", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["a"]}, "is for csv, jsonl and parquet files"),
        ({"format": "parquet", "columns": "a"}, "must be a list of at least one name"),
        ({"format": "parquet", "columns": []}, "must be a list of at least one name"),
        ({"format": "parquet", "columns": [1]}, "must be strings"),
        ({"format": "parquet", "columns": ["a", "a"]}, "names a column twice"),
    ],
)
def test_columns_that_cannot_be_used_are_refused_at_once(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidDAG, match=message):
        p.read_files("x", **options)


def test_only_the_columns_asked_for_are_read(pyr: Instance, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": [2], "c": [3]}), tmp_path / "x.parquet")
    source = p.read_files(tmp_path / "*", format="parquet", columns=["c", "a"])
    copy(pyr, source, p.write_list("out"))
    assert [list(row.items()) for row in pyr.list("out")] == [[("c", 3), ("a", 1)]]
    source = p.read_files(tmp_path / "*", format="parquet", columns=["a", "d"])
    with pytest.raises(JobFailed, match=r"x.parquet' has no column 'd'; its columns are a, b, c"):
        copy(pyr, source, p.write_list("out"))


@given(
    files=st.lists(st.lists(st.integers(0, 1000), max_size=8), max_size=4),
    readers=st.integers(1, 9),
)
def test_each_row_group_is_read_once(files: list[list[int]], readers: int) -> None:
    lengths = [(str(index), sum(sizes) + 100) for index, sizes in enumerate(files)]
    read = [
        (part.path, group)
        for reader in range(readers)
        for part in ranges_of(lengths, reader, readers)
        for group in row_groups_in(part, files[int(part.path)])
    ]
    assert read == [(str(i), group) for i, sizes in enumerate(files) for group in range(len(sizes))]


@given(st.integers(1, 200), st.integers(1, 20))
def test_row_groups_of_one_size_are_divided_evenly(groups: int, readers: int) -> None:
    shares = []
    for reader in range(readers):
        parts = ranges_of([("a", 1000 * groups)], reader, readers)
        shares.append(sum(len(row_groups_in(part, [7] * groups)) for part in parts))
    assert max(shares) - min(shares) <= 1
    assert row_groups_in(Range("a"), [7] * groups) == list(range(groups))


def test_a_file_is_divided_among_processors(pyr: Instance, tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": range(1000)}), tmp_path / "a.parquet", row_group_size=100)
    dag = copying(p.read_files(tmp_path / "*", format="parquet"), p.write_list("out"), readers=3)
    execution = pyr.new_light_job(dag).execute()
    execution.result(10)
    assert sorted(row["n"] for row in pyr.list("out")) == list(range(1000))
    emitted = [each["emitted"] for each in execution.metrics()["read"]["processors"]]
    assert sorted(emitted) == [300, 300, 400]


moments = st.none() | st.datetimes()


@given(st.lists(moments, max_size=5), st.sampled_from(["s", "ms", "us"]))
def test_dates_and_times_are_what_arrow_makes_of_them(some: list[Any], unit: str) -> None:
    for type in (
        pa.timestamp(unit),
        pa.timestamp(unit, "UTC"),
        pa.timestamp(unit, "Europe/Berlin"),
        pa.timestamp(unit, "+02:00"),
        pa.date32(),
        pa.date64(),
    ):
        some = [v and v.replace(year=min(max(v.year, 3), 9997), microsecond=0) for v in some]
        array = pa.array(some, pa.timestamp("us")).cast(type, safe=False)
        assert values_of(array) == array.to_pylist()
        assert [repr(v) for v in values_of(array)] == [repr(v) for v in array.to_pylist()]


def test_a_date_that_python_does_not_have_is_named(pyr: Instance, tmp_path: Path) -> None:
    far = pa.array([10**18], pa.int64()).cast(pa.timestamp("us"))
    pq.write_table(pa.table({"when": far}), tmp_path / "far.parquet")
    with pytest.raises(
        JobFailed, match=r"column 'when' of Parquet file .*far.parquet' has a value"
    ):
        read_back(pyr, tmp_path / "*", "parquet")


def test_rows_are_what_arrow_makes_of_them(pyr: Instance, tmp_path: Path) -> None:
    table = pa.table(
        {
            "int": [1, None, 3],
            "text": ["a", None, "ä"],
            "day": [dt.date(2020, 1, 1), None, dt.date(1, 1, 1)],
            "price": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("2")]),
            "list": [[1], None, []],
            "nested": [{"x": [1]}, None, {"x": None}],
            'it\'s "odd"\n{}': [1.5, None, 2.5],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    assert read_back(pyr, tmp_path / "*", "parquet") == table.to_pylist()


@pytest.mark.parametrize("format", ["parquet", "text"])
def test_an_empty_file_is_no_parquet_file(pyr: Instance, tmp_path: Path, format: str) -> None:
    (tmp_path / "a").touch()
    if format == "text":
        assert read_back(pyr, tmp_path / "*", format) == []
        return
    with pytest.raises(JobFailed, match=r"file '.*/a' is not a Parquet file that can be read"):
        read_back(pyr, tmp_path / "*", format)
