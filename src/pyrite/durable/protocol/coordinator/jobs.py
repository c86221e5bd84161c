"""The life of a job: it is planned, it may be cancelled or fail, it ends."""

from __future__ import annotations

from dataclasses import replace

from pyrite.durable.protocol.coordinator.draft import Draft
from pyrite.durable.protocol.coordinator.watches import CancelWatch
from pyrite.durable.protocol.states import ON_A_PART, SEALING
from pyrite.durable.protocol.tree import paths
from pyrite.durable.protocol.tree.nodes import JobNode, JobStatus
from pyrite.durable.protocol.view.job import Job
from pyrite.durable.protocol.workflow import Workflow


def plan(draft: Draft, name: str, workflow: Workflow) -> None:
    draft.delete(paths.plan(name))
    if name in draft.cluster.ended:
        draft.delete(paths.workflow(name))
    elif name not in draft.cluster.jobs:
        job = Job(name, JobNode(draft.number, JobStatus.RUNNING), workflow)
        draft.cluster.add(job)
        draft.put(paths.job(name), job.node.text())
        draft.create(paths.tasks(name))
        draft.create(paths.live(name))
        draft.watches.append(CancelWatch(name))
        draft.jobs[name] = None


def reject(draft: Draft, name: str, reason: str) -> None:
    draft.delete(paths.plan(name))
    if name in draft.cluster.ended or name in draft.cluster.jobs:
        return
    node = JobNode(draft.number, JobStatus.FAILED, reason, draft.now)
    draft.cluster.ended[name] = node
    draft.put(paths.job(name), node.text())
    draft.delete(paths.cancel(name), paths.workflow(name))
    draft.close_queues(name)


def cancel(draft: Draft, name: str) -> None:
    """A job that is not planned yet keeps its request: the watch that its plan arms finds it. One
    whose results are becoming visible goes on to its end."""
    if name in draft.cluster.ended:
        draft.delete(paths.cancel(name))
    elif name in draft.cluster.jobs:
        draft.delete(paths.cancel(name))
        if not draft.cluster.jobs[name].is_completing:
            _stop(draft, name, JobStatus.CANCELLING, "")


def fail(draft: Draft, peer: str, offer: int, reason: str) -> None:
    """A sealing peer is not evicted, so it leaves its part here."""
    standing = draft.cluster.standing(peer)
    if standing is None or standing.offer != offer or standing.part is None:
        return
    if standing.state in ON_A_PART:
        _stop(draft, standing.part.job, JobStatus.FAILING, reason)
        if standing.state is SEALING:
            draft.release(peer)


def end_if_over(draft: Draft, name: str) -> None:
    """A running job is over when all its parts are complete, another one when no peer is on it."""
    job = draft.cluster.jobs.get(name)
    if job is None or (job.open_count if job.is_running else job.peer_count):
        return
    node = replace(job.node, status=job.node.status.end, ended=draft.now)
    for late in job.died_sealing.values():
        draft.delete(*(paths.completion(offer) for offer in late))
    draft.cluster.end(job, node)
    draft.put(paths.job(name), node.text())
    draft.delete(paths.tasks(name))
    draft.delete(paths.plan(name), paths.cancel(name), paths.workflow(name))
    if node.status is JobStatus.COMPLETE:  # then its exact metrics are there
        draft.delete(paths.live(name))
    draft.close_queues(name)


def _stop(draft: Draft, name: str, status: JobStatus, reason: str) -> None:
    """The peers of the job are evicted one by one; see `offers.wish`."""
    job = draft.cluster.jobs[name]
    if not job.is_running:
        return
    job.node = replace(job.node, status=status, reason=reason)
    draft.cluster.index(job)
    draft.put(paths.job(name), job.node.text())
    draft.jobs[name] = None
