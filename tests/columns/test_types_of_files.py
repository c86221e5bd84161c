"""The results of steps that are fused with read_batches have the types that the files have,
although Polars, which reads the files for its kernels, has fewer types."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pyrite import DAG, Pipeline, between, instance
from pyrite import processors as p
from pyrite.columns.kernels import Kernels

KERNELS: tuple[Kernels, ...] = ("arrow", "polars")
KINDS: dict[str, pa.DataType] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "bytes": pa.binary(2),
    "time32": pa.time32("ms"),
    "time64": pa.time64("us"),
    "list": pa.list_(pa.string()),
    "dictionary": pa.dictionary(pa.int32(), pa.string()),
}
VALUES: dict[str, list[Any]] = {
    "string": ["b", "a"],
    "binary": [b"b", b"a"],
    "bytes": [b"bb", b"aa"],
    "time32": [2, 1],
    "time64": [2, 1],
    "list": [["b"], None],
    "dictionary": ["b", "a"],
}
ROWS = pa.table({name: pa.array(VALUES[name], kind) for name, kind in KINDS.items()})


def made_by(source: Any, step: Any) -> pa.Table:
    """What a step makes that is fused with a source."""
    dag = DAG()
    read = dag.vertex("read", source, local_parallelism=1)
    made = dag.vertex("step", step, local_parallelism=1)
    out = dag.vertex("out", p.write_list("made"), local_parallelism=1)
    dag.edge(between(read, made)).edge(between(made, out))
    with instance() as pyr:
        pyr.new_light_job(dag).execute().result()
        return pa.Table.from_batches(pyr.list("made"))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("kernels", KERNELS)
def test_both_kernels_give_the_types_of_the_files(
    kernels: Kernels, name: str, tmp_path: Path
) -> None:
    pq.write_table(ROWS.select(sorted({"string", name})), tmp_path / "a.parquet")
    read = p.read_batches(tmp_path / "*.parquet")
    group = p.group_batches(["string"], {"f": (name, "first")}, kernels=kernels)
    groups = made_by(read, group)
    plain = pa.string() if name == "dictionary" else KINDS[name]
    assert groups.schema.types == [pa.string(), plain]
    rows = made_by(read, p.sort_batches(["string"], kernels=kernels))
    assert rows.schema.field(name).type == KINDS[name]
    assert rows.column(name).to_pylist() == ROWS[name].to_pylist()[::-1]


def test_files_that_polars_and_arrow_read_go_together(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    packed = gzip.compress((tmp_path / "a.parquet").read_bytes())
    (tmp_path / "b.parquet.gz").write_bytes(packed)
    stage = Pipeline().read_from(p.read_batches(tmp_path / "*"))
    counts = stage.group_by("time64", "bytes").aggregate(n=("string", "count")).rows().collect()
    assert [row["n"] for row in counts] == [2, 2]
    assert len(stage.sort("time32").rows().collect()) == 4


def test_a_filter_and_a_selection_between_keep_the_types(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    pipe = Pipeline()
    stage = pipe.read_from(p.read_batches(tmp_path / "*", columns=["string", "binary"]))
    some = stage.filter(pc.field("string") == "a").select("string")
    some.group_by("string").aggregate(n=("string", "min")).write_to(
        p.write_batches(tmp_path / "out")
    )
    pipe.run()
    (written,) = (tmp_path / "out").glob("*.parquet")
    assert pq.read_schema(written).types == [pa.string(), pa.string()]
