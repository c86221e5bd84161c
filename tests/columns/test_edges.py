"""Batches of rows go over edges like other items, and edges that are partitioned by columns split
them: each row arrives once, where its key belongs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyrite import DAG, Instance, InvalidDAG, JobFailed, Vertex, between, skip
from pyrite import processors as p
from tests.columns.dags import Makes, Rows, Tells, numbered, owner, told


def arrived(pyr: Instance, dag: DAG) -> Rows:
    pyr.list("told").clear()
    pyr.new_light_job(dag).execute().result(20)
    return list(pyr.list("told"))


ALL = [row for n in range(10) for row in numbered(20 * n, 20).to_pylist()]


def in_order(rows: Rows) -> list[dict[str, Any]]:
    return sorted((row for _, row in rows), key=lambda row: row["n"])


@pytest.mark.parametrize("columns", [["n"], ["text"], ["n", "text"]])
def test_each_row_goes_where_its_key_belongs(pyr: Instance, columns: list[str]) -> None:
    rows = arrived(pyr, told(lambda edge: edge.partitioned(columns=columns)))
    for index, row in rows:
        key = row[columns[0]] if len(columns) == 1 else tuple(row[name] for name in columns)
        assert index == owner(key, 3)
    assert in_order(rows) == ALL


def test_rows_go_where_items_with_the_same_key_go(pyr: Instance) -> None:
    batch = pa.record_batch({"k": ["a", "b", None, "a", "ü"], "v": [1, 2, 3, 4, 5]})
    by_column, by_row = (
        told(lambda edge: edge.partitioned(columns=["k"], nulls=True), source=p.read_items(items))
        for items in ([batch], batch.to_pylist())
    )
    assert sorted(arrived(pyr, by_column), key=str) == sorted(arrived(pyr, by_row), key=str)


@pytest.mark.parametrize("as_rows", [False, True])
@pytest.mark.parametrize("receivers", [1, 3])
def test_a_null_key_is_an_error_as_for_items(pyr: Instance, as_rows: bool, receivers: int) -> None:
    batch = pa.record_batch({"k": ["a", None]})
    source = p.read_items(batch.to_pylist() if as_rows else [batch])
    dag = told(lambda edge: edge.partitioned(columns=["k"]), source=source, receivers=receivers)
    with pytest.raises(JobFailed, match=r"column 'k', which is null in a row.*nulls=True"):
        arrived(pyr, dag)


def test_a_null_beside_another_key_column_is_a_key(pyr: Instance) -> None:
    batch = pa.record_batch({"k": ["a", None], "l": [None, None]})
    dag = told(lambda edge: edge.partitioned(columns=["k", "l"]), source=p.read_items([batch]))
    for index, row in arrived(pyr, dag):
        assert index == owner((row["k"], row["l"]), 3)


@pytest.mark.parametrize("shape", ["unicast", "all_to_one", "isolated"])
def test_other_edges_carry_each_batch_once(pyr: Instance, shape: str) -> None:
    rows = arrived(pyr, told(lambda edge: getattr(edge, shape)()))
    assert in_order(rows) == ALL
    used = {index for index, _ in rows}
    assert len(used) == (1 if shape == "all_to_one" else 3)
    for n in range(10):  # a batch stays whole
        assert len({index for index, row in rows if row["n"] // 20 == n}) == 1


def test_broadcast_carries_each_batch_to_all(pyr: Instance) -> None:
    rows = arrived(pyr, told(lambda edge: edge.broadcast()))
    assert [index for index, _ in sorted(rows, key=lambda r: (r[1]["n"], r[0]))] == [0, 1, 2] * 200


def test_rows_of_one_sender_stay_in_their_order(pyr: Instance) -> None:
    dag = told(lambda edge: edge.partitioned(columns=["n"]), senders=1)
    rows = arrived(pyr, dag)
    for receiver in range(3):
        mine = [row["n"] for index, row in rows if index == receiver]
        assert mine == sorted(mine)


class CountsBatches(Tells):
    """Emits the number of rows of each batch that it gets."""

    def try_process_0(self, batch: Any) -> None:
        self.emit(batch.num_rows)


def test_small_pieces_are_put_together(pyr: Instance) -> None:
    dag = told(
        lambda edge: edge.partitioned(columns=["n"]),
        source=lambda: Makes(batches=500, rows=10),
        receiver=CountsBatches,
    )
    pyr.new_light_job(dag).execute().result(20)
    counts = list(pyr.list("told"))
    assert sum(counts) == 5000
    assert len(counts) < 100


def test_metrics_count_rows(pyr: Instance) -> None:
    job = pyr.new_light_job(told(lambda edge: edge.partitioned(columns=["n"]))).execute()
    job.result(20)
    metrics = job.metrics()
    assert metrics["makes"]["emitted"] == metrics["tells"]["received"] == 200


@pytest.mark.parametrize("on_error", ["fail", skip()])
def test_metrics_of_fused_vertices_count_rows_too(pyr: Instance, on_error: Any) -> None:
    dag = DAG()
    reads = dag.vertex("reads", p.read_items([numbered(n, 10) for n in range(5)]))
    halves = dag.vertex("halves", p.map(lambda batch: batch.slice(5)), on_error=on_error)
    most = dag.vertex("most", p.filter(lambda batch: batch["n"][0].as_py() > 5), on_error=on_error)
    keeps = dag.vertex("keeps", p.write_list("kept"))
    dag.edge(between(reads, halves)).edge(between(halves, most)).edge(between(most, keeps))
    job = pyr.new_light_job(dag).execute()
    job.result(20)
    metrics = job.metrics()
    assert metrics["most"]["fused_with"]
    assert [metrics[name]["emitted"] for name in ("reads", "halves", "most")] == [50, 25, 20]
    assert [metrics[name]["received"] for name in ("halves", "most", "keeps")] == [50, 25, 20]


def test_empty_batches_and_batches_of_one_row(pyr: Instance) -> None:
    batches = [numbered(0, 0), numbered(0, 1), numbered(0, 0), numbered(1, 1)]
    dag = told(lambda edge: edge.partitioned(columns=["n"]), source=p.read_items(batches))
    assert in_order(arrived(pyr, dag)) == ALL[:2]


def test_batches_whose_schemas_differ_stay_apart(pyr: Instance) -> None:
    batches = [pa.record_batch({"n": [n], f"c{n % 3}": [n]}) for n in range(9)]
    dag = told(lambda edge: edge.partitioned(columns=["n"]), source=p.read_items(batches))
    assert in_order(arrived(pyr, dag)) == [{"n": n, f"c{n % 3}": n} for n in range(9)]


@pytest.mark.parametrize("receivers", [1, 2])
def test_a_column_that_is_missing_is_named(pyr: Instance, receivers: int) -> None:
    dag = told(lambda edge: edge.partitioned(columns=["nn"]), senders=1, receivers=receivers)
    with pytest.raises(JobFailed, match="'makes -> tells' is partitioned by column 'nn'") as failed:
        arrived(pyr, dag)
    assert "did you mean 'n'?" in str(failed.value)
    assert failed.value.vertex == "makes"


def test_a_fused_edge_checks_its_columns_too(pyr: Instance) -> None:
    dag = DAG()
    reads = dag.vertex("reads", p.read_items([numbered(0, 3)]), local_parallelism=1)
    keeps = dag.vertex("keeps", p.write_list("told"), local_parallelism=1)
    dag.edge(between(reads, keeps).partitioned(columns=["nn"]))
    with pytest.raises(JobFailed, match="partitioned by column 'nn'"):
        arrived(pyr, dag)


def test_an_item_that_is_neither_a_batch_nor_a_row_is_refused(pyr: Instance) -> None:
    dag = told(lambda edge: edge.partitioned(columns=["n"]), source=p.read_items([7]))
    with pytest.raises(JobFailed, match=r"batches of rows .* got 7"):
        arrived(pyr, dag)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"columns": "n"}, "must be a list of names"),
        ({"columns": []}, "is empty"),
        ({"columns": [1]}, "must be names of columns"),
        ({"columns": ["a", "a"]}, "'a' twice"),
        ({"columns": ["a"], "key": len}, "both columns= and key="),
        ({"columns": ["a"], "partitioner": max}, "both columns= and partitioner="),
    ],
)
def test_wrong_columns_are_refused(settings: dict[str, Any], message: str) -> None:
    edge = between(Vertex("a", Makes), Vertex("b", Tells))
    with pytest.raises(InvalidDAG, match=message):
        edge.partitioned(**settings)


def test_another_pattern_forgets_the_columns() -> None:
    edge = between(Vertex("a", Makes), Vertex("b", Tells)).partitioned(columns=["n"])
    assert edge.settings.describe() == "partitioned by n"
    assert edge.unicast().settings.columns is None


def test_batches_among_other_items_all_arrive(pyr: Instance) -> None:
    big = pa.record_batch({"n": pa.array(range(2_500_000), pa.int64())})  # 20 MB
    items = [each for n in range(8) for each in (n, big)]
    dag = DAG()
    read = dag.vertex("read", p.read_items(items), local_parallelism=1)
    kinds = dag.vertex("kinds", p.map(lambda item: type(item).__name__), local_parallelism=2)
    out = dag.vertex("out", p.write_list("kinds"), local_parallelism=1)
    dag.edge(between(read, kinds)).edge(between(kinds, out))
    pyr.new_light_job(dag).execute().result(20)
    assert sorted(pyr.list("kinds")) == ["RecordBatch"] * 8 + ["int"] * 8
