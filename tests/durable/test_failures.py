"""The failure of a peer, as it comes to the handle of its job."""

from __future__ import annotations

import pytest

from pyrite.durable.client.jobs import outcome
from pyrite.durable.peer.peer import failure_text
from pyrite.durable.protocol.coordinator.events import Fail
from pyrite.durable.protocol.coordinator.watches import RequestWatch
from pyrite.durable.protocol.tree.nodes import FAILED, JobNode, JobStatus
from pyrite.engine.failure import Failed


@pytest.mark.parametrize("message", ["short", "of\ntwo lines", "long" * 100_000, "é" * 100_000])
def test_a_failure_comes_to_the_handle_of_its_job(message: str) -> None:
    told = FAILED + failure_text(Failed(ValueError(message)))
    event = RequestWatch("completion", "p1", 7).event(told)
    assert isinstance(event, Fail)
    error = outcome(JobNode(1, JobStatus.FAILED, event.reason), "job 'j'")
    assert message[:100].replace("\n", " ") in str(error).replace("\n", " ")
    assert "ValueError" in str(error)
