"""What a coordinator tells people: the entries of the log that matter to them, as sentences."""

from __future__ import annotations

from collections.abc import Iterator

from pyrite.durable.protocol.coordinator.log import Entry
from pyrite.durable.protocol.tree.nodes import JobNode
from pyrite.durable.protocol.tree.writes import Put


def sentences(entry: Entry) -> Iterator[str]:
    r"""
    >>> job = Put("/job/j", '[3,"failed","no memory\\nand more"]')
    >>> list(sentences(Entry(7, ("death", "p1"), (job,))))
    ["peer 'p1' died", "job 'j' failed: no memory"]
    """
    match entry.event:
        case ("born", peer):
            yield f"peer {peer!r} was born"
        case ("death", peer):
            yield f"peer {peer!r} died"
        case ("revoke", peer, offer):
            yield f"peer {peer!r} did not take offer {offer} in time and gets no more"
        case ("shutdown", peer):
            yield f"peer {peer!r} shuts down"
    for write in entry.writes:
        match write:
            case Put(path, data) if path.startswith("/job/"):
                node = JobNode.read(data)
                reason = f": {node.reason.splitlines()[0]}" if node.reason else ""
                verb = "" if node.status.value == "failed" else "is "
                yield f"job {path.removeprefix('/job/')!r} {verb}{node.status.value}{reason}"
