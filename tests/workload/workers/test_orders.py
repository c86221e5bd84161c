"""Orders go through the worker queue whole."""

from __future__ import annotations

import os

import pytest

from pyrite.workload.storage.places import Place
from pyrite.workload.workers import orders
from pyrite.workload.workers.orders import INPUTS_MAX, Order
from pyrite.workload.workers.worker_queue import Consumer, WorkerQueue


@pytest.mark.parametrize("count", [0, 1, INPUTS_MAX])
@pytest.mark.parametrize("is_taken_back", [False, True])
def test_the_largest_order_arrives_whole(count: int, is_taken_back: bool) -> None:
    inputs = tuple(Place(n, 100 * n) for n in range(count))
    order = Order(7, 1, bytes(16), inputs, 3)
    queue = WorkerQueue()
    worker = Consumer(os.dup(queue.workers_end))
    try:
        queue.put(orders.pack(order, lambda order, places: pytest.fail("it was put aside")))
        data = queue.take_back() if is_taken_back else worker.consume()
        assert data is not None
        assert orders.unpack(data) == order
    finally:
        worker._socket.close()
        queue.close()
