"""Payloads of batches, between members and in durable queues: Arrow IPC, by partition, and never
too large."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.dag import EdgeSettings
from pyrite.engine.plan import EdgePlan
from pyrite.engine.routing import RoutingFailed
from pyrite.exchange.groups import Groups, Packing, unpacked
from tests.columns.dags import numbered

EDGE = EdgePlan(0, "a", 0, "b", 0, EdgeSettings(), True)
MB = 1 << 20


def arrived(packing: Packing, groups: Groups) -> Groups:
    return [(p, items) for payload, _ in packing.packets(groups) for p, items in unpacked(payload)]


@given(
    st.lists(
        st.tuples(st.none() | st.integers(0, 9), st.lists(st.integers(0, 4), min_size=1)),
        min_size=1,
    )
)
def test_batches_arrive_by_partition_in_order(parts: list[tuple[int | None, list[int]]]) -> None:
    groups: Groups = [(p, [numbered(n, n) for n in counts]) for p, counts in parts]
    assert arrived(Packing(EDGE), groups) == groups


def test_a_slice_travels_without_the_rest_of_its_batch() -> None:
    batch = pa.record_batch({"n": np.arange(1_000_000)}).slice(7, 10)
    ((payload, count),) = Packing(EDGE).packets([(3, [batch])])
    assert count == 1
    assert len(payload) < 2_000


def test_a_payload_has_at_most_8_mb() -> None:
    batches = [pa.record_batch({"n": np.zeros(MB // 4)}) for _ in range(30)]
    sizes = [len(payload) for payload, _ in Packing(EDGE).packets([(None, batches)])]
    assert len(sizes) > 1
    assert max(sizes) < 8 * MB + 10_000


def test_a_batch_that_is_too_large_for_a_way_goes_in_slices() -> None:
    batch = pa.record_batch({"n": np.arange(100_000)})
    groups = arrived(Packing(EDGE, largest=100_000), [(5, [batch])])
    assert {partition for partition, _ in groups} == {5}
    pieces = [each for _, items in groups for each in items]
    assert pa.Table.from_batches(pieces) == pa.Table.from_batches([batch])


def test_a_row_that_is_too_large_is_refused() -> None:
    batch = pa.record_batch({"text": ["x" * 10_000]})
    with pytest.raises(RoutingFailed) as raised:
        list(Packing(EDGE, largest=5_000).packets([(None, [batch])]))
    assert "too large for edge 'a -> b'" in str(raised.value.error)


def test_batches_and_other_items_travel_together() -> None:
    groups: Groups = [(None, [numbered(0, 3), {"n": 1}]), (2, [numbered(3, 1)])]
    assert arrived(Packing(EDGE), groups) == groups
