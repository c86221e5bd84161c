"""Where each node of the store is, below the node of the cluster.

| path | written by | what it holds |
| --- | --- | --- |
| /peer/<peer> | the peer, at its birth | the peer's address, for people |
| /pulse/<peer> | the peer (ephemeral) | exists as long as the peer is alive |
| /status/<peer> | coordinator | exists as long as the peer may commit |
| /peer-state/<peer>/state-<entry> | coordinator | a `Standing`; the last one counts |
| /payload/<peer> | coordinator | the peer's last `Payload`: the offer to take |
| /cooldown/<peer> | coordinator | the number of the peer's last offer that is over |
| /shutdown/<peer> | a client creates: WANTED; coordinator: NOW | the peer stops at NOW |
| /ack/<offer> | coordinator creates, peer sets | the peer takes the offer |
| /seal/<offer> | coordinator creates, peer sets | the peer asks whether it may seal |
| /exhaust/<offer> | coordinator | the answer: sealing or waiting |
| /completion/<offer> | coordinator creates, peer sets | the peer has sealed, or its job failed |
| /submitting/<job> | a client (ephemeral) | exists from before the queues until after the plan |
| /plan/<job>, /cancel/<job> | a client | a request; deleted when it is handled |
| /workflow/<job> | a client, before the plan | the `Workflow` |
| /catalog/<job> | a client, before the plan | the job's name, for people; stays with /job/<job> |
| /shape/<job> | a client, before the plan | its DAG, for people; stays with /job/<job> |
| /job/<job> | coordinator | a `JobNode`; it stays when the job has ended |
| /metrics/<job> | the peer that completes the job | what its vertices did; stays with /job/<job> |
| /live/<job> | coordinator | exists while the job runs; stays if it does not complete |
| /live/<job>/<peer>-<n> | the peer | what its parts have done so far, for people: `Tallies` |
| /waits/<job> | coordinator | a sentence: why parts of the job have no peer; gone when all have |
| /task/<job>/<part> | coordinator, at the first offer | exists as long as the part is open |
| /task/<job>/<part>/<edge and upstream part> | peers, first wins | a `Leader` |
| /task/<job>/<part>.complete | coordinator | exists when the part is complete |
| /task/<job>/<part>.sealed-in-vain | coordinator | see `Job.sealed_in_vain` |
| /job-log | coordinator | a `Served`: the last offer number, the last job served |
| /election/proposal-<n> | coordinators (ephemeral, sequential) | the lowest one leads |
| /coordinator/epoch | a new leader | its epoch; every write checks it |
| /coordinator/<event>-log/log-entry-<n> | coordinator | an `Entry` |
| /coordinator/checkpoint | coordinator | the number of the last entry whose writes are done |
| /coordinator/to-close/<job> | coordinator | exists until the queues of an ended job are deleted |
| /collections | whoever comes first | where the maps and lists of a deployment are |
| /coordinator/stumble | coordinator | the event that it could not handle: a `Stumble` |

Entries of the log up to the checkpoint can be deleted at any time.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

from pyrite.durable.protocol.workflow import Part, Upstream

EPOCH: Final = "/coordinator/epoch"
CHECKPOINT: Final = "/coordinator/checkpoint"
JOB_LOG: Final = "/job-log"
ELECTION: Final = "/election"
TO_CLOSE: Final = "/coordinator/to-close"
STUMBLE: Final = "/coordinator/stumble"
WAITS: Final = "/waits"
COLLECTIONS: Final = "/collections"


def peer(name: str) -> str:
    return f"/peer/{name}"


def pulse(name: str) -> str:
    return f"/pulse/{name}"


def status(name: str) -> str:
    return f"/status/{name}"


def peer_states(name: str) -> str:
    return f"/peer-state/{name}"


def peer_state(name: str, entry: int) -> str:
    return f"/peer-state/{name}/state-{entry:010}"


def payload(name: str) -> str:
    return f"/payload/{name}"


def cooldown(name: str) -> str:
    return f"/cooldown/{name}"


def shutdown(name: str) -> str:
    return f"/shutdown/{name}"


def ack(offer: int) -> str:
    return f"/ack/{offer}"


def seal(offer: int) -> str:
    return f"/seal/{offer}"


def exhaust(offer: int) -> str:
    return f"/exhaust/{offer}"


def completion(offer: int) -> str:
    return f"/completion/{offer}"


def submitting(job: str) -> str:
    return f"/submitting/{job}"


def plan(job: str) -> str:
    return f"/plan/{job}"


def cancel(job: str) -> str:
    return f"/cancel/{job}"


def catalog(job: str) -> str:
    return f"/catalog/{job}"


def shape(job: str) -> str:
    return f"/shape/{job}"


def metrics(job: str) -> str:
    return f"/metrics/{job}"


def live(job: str) -> str:
    return f"/live/{job}"


def live_of(job: str, peer: str, number: int) -> str:
    return f"/live/{job}/{peer}-{number}"


def peer_of_live(path: str) -> str:
    """
    >>> peer_of_live(live_of("j1", "peer-1a2b", 3))
    'peer-1a2b'
    """
    return path.rpartition("/")[2].rpartition("-")[0]


def workflow(job: str) -> str:
    return f"/workflow/{job}"


def job(name: str) -> str:
    return f"/job/{name}"


def waits(job: str) -> str:
    return f"{WAITS}/{job}"


def to_close(job: str) -> str:
    return f"{TO_CLOSE}/{job}"


def tasks(name: str) -> str:
    return f"/task/{name}"


def part(of: Part) -> str:
    """
    >>> part(Part("j1", "a/b", 2))
    '/task/j1/a%2Fb-2'
    """
    return f"/task/{of.job}/{quote(of.task, safe='')}-{of.member}"


def complete(of: Part) -> str:
    return f"{part(of)}.complete"


def sealed_in_vain(of: Part) -> str:
    return f"{part(of)}.sealed-in-vain"


def part_named(job: str, name: str) -> tuple[Part, str]:
    """The part that a child of /task/<job> stands for, and how it marks it.

    >>> part_named("j1", "a%2Fb.c-2.complete")
    (Part(job='j1', task='a/b.c', member=2), 'complete')
    >>> part_named("j1", "a-2.sealed-in-vain")[1], part_named("j1", "a-2")[1]
    ('sealed-in-vain', '')
    """
    found = re.fullmatch(r"(.+)-(\d+)(?:\.(complete|sealed-in-vain))?", name)
    assert found is not None, f"{name!r} is not the name of a part"
    return Part(job, unquote(found[1]), int(found[2])), found[3] or ""


def leader(of: Part, edge: str, upstream: Upstream) -> str:
    """The leader among the sentinels of one edge and one upstream part, in the queue of a
    concurrent part. It is a child of the part, so nobody can create it for a part that is complete
    or a job that has ended."""
    name = f"{quote(edge, safe='')}:{quote(upstream.task, safe='')}-{upstream.member}"
    return f"{part(of)}/{name}"


def log_entry(kind: str, number: int) -> str:
    return f"/coordinator/{kind}-log/log-entry-{number:010}"
