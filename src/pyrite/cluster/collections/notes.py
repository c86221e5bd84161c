"""Which members held a collection when it was used last: so that whoever uses it again learns,
once, that a part of it is gone. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pyrite.cluster.collections.storage import owner_of
from pyrite.errors import PyriteError

Incarnations = Sequence[tuple[str, str | None]]
"""The address of each member, and which process it is; None while it is not there."""


class PartLost(PyriteError):
    """A member that held a part of a named map or list has died, and the part with it."""


Note = dict[str, str]
"""By address, the incarnations of the members that held a collection when it was used last."""


class Notes:
    """What one user of collections, a client or a member, has noted about them."""

    def __init__(self) -> None:
        self._notes: dict[tuple[str, str], Note] = {}

    def of(self, kind: str, name: str) -> Note:
        """The note about one collection, to be used with `check`."""
        return self._notes.setdefault((kind, name), {})


def check(kind: str, name: str, note: Note, members: Incarnations) -> None:
    """Brings a note up to date. Raises PartLost if a member that holds a part of the collection is
    another process than the note says: so it does that once for each loss."""
    lost = []
    for address, incarnation in _holders(kind, name, members):
        if incarnation is not None:
            if note.get(address, incarnation) != incarnation:
                lost.append(address)
            note[address] = incarnation
    if lost:
        held = "what it held" if kind == "list" else "its entries there"
        raise PartLost(
            f"the {kind} '{name}' has lost {held}: member {', '.join(lost)} has died since it was "
            f"used last; the {kind} can be used again, without that"
        )


def _holders(kind: str, name: str, members: Incarnations) -> Incarnations:
    """A map is on all members, a list on the owner of its name."""
    return [members[owner_of(name, len(members))]] if kind == "list" else members
