"""Who a process on the wire is, and whether two processes can talk to each other."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from pyrite.version import __version__
from pyrite.wire.messages import Hello


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a process says about itself. A client has no address and no list of members."""

    address: str = ""
    members: tuple[str, ...] = ()
    incarnation: str = ""
    cluster: str = ""
    """The name of a cluster whose members come and go. Its members know of no list."""
    pyrite: str = __version__
    python: str = ".".join(platform.python_version_tuple()[:2])

    def hello(self, connection: str, *, urgent: bool) -> Hello:
        return Hello(
            self.pyrite,
            self.python,
            self.address,
            self.incarnation,
            self.members,
            self.cluster,
            connection,
            urgent,
        )

    def objection_to(self, other: Hello) -> str | None:
        """Why this process cannot connect to the sender of a hello; None if it can."""
        if (self.pyrite, self.python) != (other.pyrite, other.python):
            return (
                f"versions differ: Pyrite {self.pyrite} on Python {self.python} at "
                f"{self.address or 'the client'}, Pyrite {other.pyrite} on Python {other.python} "
                f"at {other.address or 'the client'}; run the same versions everywhere"
            )
        if self.address and other.address and self.cluster != other.cluster:
            return (
                f"{self.address} is a member of {_named(self.cluster)}, {other.address} of "
                f"{_named(other.cluster)}; they cannot be members of one cluster"
            )
        if self.address and other.address and self.members != other.members:
            return (
                f"the lists of members differ: {', '.join(self.members)} at {self.address}, "
                f"{', '.join(other.members)} at {other.address}; give all members the same list"
            )
        return None


def _named(cluster: str) -> str:
    return f"cluster '{cluster}'" if cluster else "a cluster with a fixed list of members"
