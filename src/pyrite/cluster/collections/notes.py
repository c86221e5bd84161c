"""Which members held a collection when it was used: so that each of its users learns once that a
part of it is gone. Each client is a user; all jobs of a cluster together are one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyrite.cluster.collections.storage import owner_of
from pyrite.errors import PyriteError

Incarnations = Sequence[tuple[str, str | None]]
"""The address of each member, and which process it is; None while it is not there."""
There = Mapping[str, str]
"""By address, the incarnations of members."""
Heard = Mapping[tuple[str, str], There]
"""By kind and name, the members that were there when a collection was first used by anybody."""


class PartLost(PyriteError):
    """A member that held a part of a named map or list has died, and the part with it."""


@dataclass(slots=True)
class Note:
    """What one user of collections knows about the members that hold one of them."""

    there: dict[str, str]
    was_used: bool = False
    """Whether the members were there when the user used the collection, or only when it
    connected."""


class Notes:
    """The notes of one user. `there` are the members that it found when it connected."""

    def __init__(self, there: There | None = None) -> None:
        self._there = there or {}
        self._notes: dict[tuple[str, str], Note] = {}

    def of(self, kind: str, name: str) -> Note:
        """The note about one collection, to be used with `check`."""
        note = self._notes.get((kind, name))
        return note or self._notes.setdefault((kind, name), Note(dict(self._there)))


class MemberNotes:
    """The notes of a member, for the jobs that run on it. It hears of every collection that is used
    anywhere, so that it can tell whether one was there before a member died."""

    def __init__(self) -> None:
        self._notes: dict[tuple[str, str], Note] = {}
        self._first: dict[tuple[str, str], dict[str, str]] = {}

    def of(self, kind: str, name: str) -> Note:
        """The note about a collection that was heard of, to be used with `check`."""
        return self._notes[kind, name]

    def first(self, kind: str, name: str) -> There:
        """The members that were there when the collection was first heard of."""
        return self._first[kind, name]

    def is_known(self, kind: str, name: str) -> bool:
        return (kind, name) in self._notes

    @property
    def heard(self) -> Heard:
        """What another member must hear of."""
        return {of: dict(first) for of, first in self._first.copy().items()}

    def hear(self, heard: Heard, members: Incarnations) -> None:
        """Collections are used, here or elsewhere."""
        now = there(members)
        for of, first in heard.items():
            self._first.setdefault(of, {**now, **first})
            self._notes.setdefault(of, Note(dict(now), was_used=True))

    def told(self, kind: str, name: str, members: Incarnations) -> None:
        """A job was told on another member that a part of the collection is gone."""
        self.of(kind, name).there.update(there(members))

    def connected(self, address: str, incarnation: str) -> None:
        """A member has connected. Nobody knows of another process at its address, if it was not
        there before."""
        known: Iterable[dict[str, str]] = [
            *(note.there for note in self._notes.copy().values()),
            *self._first.copy().values(),
        ]
        for each in known:
            each.setdefault(address, incarnation)


def there(members: Incarnations) -> dict[str, str]:
    """The members that are there."""
    return {address: incarnation for address, incarnation in members if incarnation is not None}


def check(
    kind: str, name: str, note: Note, members: Incarnations, first: There | None = None
) -> None:
    """Brings a note up to date. Raises PartLost if a member that holds a part of the collection is
    another process than the note says: so it does that once for each loss. For a user that has not
    used the collection before, `first` says which members were there when anybody did."""
    lost = []
    for address, incarnation in _holders(kind, name, members):
        if not note.was_used and (first or {}).get(address) in (None, incarnation):
            note.there.pop(address, None)  # the collection is newer than the last loss there
        if incarnation is not None:
            if note.there.get(address, incarnation) != incarnation:
                lost.append(address)
            note.there[address] = incarnation
    note.was_used = True
    if lost:
        held = "what it held" if kind == "list" else "its entries there"
        raise PartLost(
            f"the {kind} '{name}' has lost {held}: member {', '.join(lost)} has died; the {kind} "
            "can be used again, without that"
        )


def _holders(kind: str, name: str, members: Incarnations) -> Incarnations:
    """A map is on all members, a list on the owner of its name."""
    return [members[owner_of(name, len(members))]] if kind == "list" else members
