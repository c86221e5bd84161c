"""The other members, as one member sees them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyrite.cluster.peers import Peers
from pyrite.wire.identity import Identity


def test_incarnations_can_be_read_while_another_thread_loses_a_member() -> None:
    peers = Peers(Identity(address="a:1", members=("a:1", "b:1"), incarnation="of a"))

    class Raced(dict[str, Any]):
        def __contains__(self, address: object) -> bool:
            there = super().__contains__(address)
            peers._connections.clear()  # as by another thread
            return there

    of_b = SimpleNamespace(peer=SimpleNamespace(incarnation="of b"))
    peers._connections = Raced({"b:1": of_b})
    assert peers.incarnations == [("a:1", "of a"), ("b:1", "of b")]
