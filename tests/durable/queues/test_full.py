"""A NATS server whose storage is full."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyrite.durable.queues.nats import NatsQueues
from pyrite.durable.queues.queues import QueuesError
from tests.durable.queues.places import Job
from tests.nats import Nats


def test_a_full_server_is_a_clear_error_and_nothing_is_left(tmp_path: Path) -> None:
    server = Nats(tmp_path, more="jetstream { max_file_store: 10KB }")
    server.start()
    queues = NatsQueues([[server.url]], cluster="c", patience=0.2)
    with pytest.raises(QueuesError, match="its storage is full, so raise max_file_store"):
        Job(queues).begin(*("x" * 5000 for _ in range(5)))
    queues.close()
    server.kill()
