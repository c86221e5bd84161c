"""The plans that members and clients keep, and those that they have sent."""

from __future__ import annotations

import pytest

from pyrite.cluster.light.plans import SentPlans


def test_a_plan_is_sent_once_unless_so_many_others_were_sent_that_the_peer_may_have_dropped_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pyrite.cluster.light.plans.MOST_PLANS_KEPT", 2)
    sent = SentPlans()
    assert [sent.add(hash) for hash in (b"a", b"b", b"a", b"c", b"a", b"b")] == [
        *(True, True, False),
        *(True, False, True),
    ]
    assert len(sent) == 2
