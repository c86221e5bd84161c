"""The states of a peer."""

from __future__ import annotations

import pytest

from pyrite.durable.protocol.states import PeerState, ProtocolError, check_transition
from tests.durable.protocol.witness import LEGAL


@pytest.mark.parametrize("before", PeerState)
@pytest.mark.parametrize("after", PeerState)
def test_only_the_legal_transitions_are_allowed(before: PeerState, after: PeerState) -> None:
    if after.value in LEGAL[before.value].split():
        check_transition("p1", before, after)
    else:
        with pytest.raises(ProtocolError, match=f"from {before.value} to {after.value}"):
            check_transition("p1", before, after)
