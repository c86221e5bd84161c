"""The states of a peer."""

from __future__ import annotations

import pytest

from pyrite.durable.protocol.coordinator.draft import Draft
from pyrite.durable.protocol.states import PeerState, ProtocolError, check_transition
from pyrite.durable.protocol.tree.nodes import Standing
from tests.durable.protocol.desk import Desk
from tests.durable.protocol.witness import LEGAL


@pytest.mark.parametrize("before", PeerState)
@pytest.mark.parametrize("after", PeerState)
def test_only_the_legal_transitions_are_allowed(before: PeerState, after: PeerState) -> None:
    if after.value in LEGAL[before.value].split():
        check_transition("p1", before, after)
    else:
        with pytest.raises(ProtocolError, match=f"from {before.value} to {after.value}"):
            check_transition("p1", before, after)


def test_the_coordinator_refuses_to_make_an_illegal_transition() -> None:
    draft = Draft(Desk("p0").cluster)
    with pytest.raises(ProtocolError, match="'p0' must not go from idle to sealing"):
        draft.move("p0", Standing(PeerState.SEALING))
    with pytest.raises(ProtocolError, match="'p1' is not known"):
        draft.move("p1", Standing(PeerState.ACKING))
