"""Makes the coordinator's view from the nodes of the store, as a new leader finds them after it has
replayed the log."""

from __future__ import annotations

from collections.abc import Mapping

from pyrite.durable.protocol.states import ProtocolError
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import NOW, JobNode, Served, Standing
from pyrite.durable.protocol.view.cluster import Cluster
from pyrite.durable.protocol.view.job import Job
from pyrite.durable.protocol.workflow import Part, Workflow


def read_cluster(nodes: Mapping[str, str]) -> Cluster:
    """`nodes` has the data of each node by its path. Of the nodes of tasks only the paths matter,
    and of the states of a peer only the last one, so the others need not be read."""
    cluster = Cluster()
    cluster.entry = int(nodes.get(paths.CHECKPOINT, "0"))
    if paths.JOB_LOG in nodes:
        cluster.served = Served.read(nodes[paths.JOB_LOG])
    complete: dict[str, set[Part]] = {}
    in_vain: dict[str, set[Part]] = {}
    states: dict[str, list[int]] = {}
    jobs: list[str] = []
    for path in nodes:
        match path.split("/")[1:]:
            case ["task", parent, name]:
                part, mark = paths.part_named(parent, name)
                if mark == "complete":
                    complete.setdefault(parent, set()).add(part)
                elif mark == "sealed-in-vain":
                    in_vain.setdefault(parent, set()).add(part)
            case ["peer-state", peer, name]:
                states.setdefault(peer, []).append(int(name.removeprefix("state-")))
            case ["job", name]:
                jobs.append(name)
    for name in jobs:
        node = JobNode.read(nodes[paths.job(name)])
        if node.status.has_ended:
            cluster.ended[name] = node
        else:
            job = Job(name, node, _workflow(nodes, name), complete.get(name, ()))
            job.sealed_in_vain |= in_vain.get(name, set())
            cluster.add(job)
    for peer, entries in states.items():
        last = max(entries)
        cluster.stand(peer, Standing.read(nodes[paths.peer_state(peer, last)]), last)
        cluster.outdated.update({(peer, entry): None for entry in entries if entry != last})
        if nodes.get(paths.shutdown(peer)) == NOW:
            cluster.leaves(peer)
    return cluster


def _workflow(nodes: Mapping[str, str], job: str) -> Workflow:
    text = nodes.get(paths.workflow(job))
    if text is None:
        raise ProtocolError(
            f"job {job!r} is running, but the store has no node {paths.workflow(job)}; it can only"
            " have been deleted by hand. Write it again, or delete the nodes of the job"
        )
    return Workflow.read(text)
