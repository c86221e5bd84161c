"""The peers on one part, counted by what they do."""

from __future__ import annotations

from pyrite.durable.protocol.states import ACTIVE, BUSY, SEALING, WAITING, PeerState


class Seats:
    """`waiting` is kept by name, because these peers are released together."""

    __slots__ = ("busy", "sealing", "waiting")

    def __init__(self) -> None:
        self.busy = 0
        self.sealing = 0
        self.waiting: dict[str, None] = {}

    def sit(self, peer: str, state: PeerState) -> None:
        self._count(state, 1)
        if state is WAITING:
            self.waiting[peer] = None

    def leave(self, peer: str, state: PeerState) -> None:
        self._count(state, -1)
        self.waiting.pop(peer, None)

    def _count(self, state: PeerState, by: int) -> None:
        if state in BUSY:
            self.busy += by
        elif state is SEALING:
            self.sealing += by

    def __len__(self) -> int:
        return self.busy + self.sealing + len(self.waiting)

    def may_seal(self, state: PeerState) -> bool:
        """The seal rule, for a peer on this part: it is active, and all others wait."""
        return state is ACTIVE and self.busy == 1 and not self.sealing

    @property
    def all_wait(self) -> bool:
        """Nobody is left who could seal, so nobody must wait for it."""
        return bool(self.waiting) and not self.busy and not self.sealing
