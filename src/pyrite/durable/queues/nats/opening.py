"""How the streams of a job come into being, and how they are found again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from pyrite.durable.protocol.workflow import Part, Workflow
from pyrite.durable.queues.checks import already_open
from pyrite.durable.queues.nats.jetstream import NAME_IN_USE, ApiError, JetStream, StreamGone
from pyrite.durable.queues.nats.jobs import Job
from pyrite.durable.queues.nats.streams import PUT_BYTES, PUTS, Stream, stream_prefix
from pyrite.durable.queues.nats.writing import check, item_of
from pyrite.durable.queues.numbering import numbering
from pyrite.durable.queues.queues import Outgoing


async def create(
    name: str,
    streams: Sequence[Stream],
    workflow: Workflow,
    first: Iterable[Outgoing],
    *,
    code: bytes,
    replicas: Sequence[int],
    ack_wait: float,
) -> Job:
    numbers = numbering(workflow)
    job = Job(name, numbers, tuple(streams))
    shared = [numbers.shared_queue(Part(name, task, 0)) for task in numbers.concurrent]
    try:
        for stream, copies in zip(streams, replicas):
            await stream.create(replicas=copies, queues=shared, ack_wait=ack_wait)
    except ApiError as error:
        if error.number == NAME_IN_USE:
            raise already_open(name) from error
        raise
    await streams[0].put_long("c", code)
    await _fill(job, first)
    text = workflow.text().encode()
    for stream in reversed(streams):
        await stream.put_all([("w", text)], {})
    return job


async def _fill(job: Job, first: Iterable[Outgoing]) -> None:
    """Messages that name no server: those of concurrent parts are spread over all."""
    lasts: list[dict[str, int]] = [{} for _ in job.streams]
    waiting: list[list[tuple[str, bytes]]] = [[] for _ in job.streams]
    sizes = [0 for _ in job.streams]

    async def flush(server: int) -> None:
        items, waiting[server], sizes[server] = waiting[server], [], 0
        await job.streams[server].put_all(items, lasts[server])

    for number, out in enumerate(first):
        check(job, [out])
        server = out.server
        if server is None:
            is_shared = out.part.task in job.numbers.concurrent
            server = number % len(job.streams) if is_shared else job.home(out.part)
        item = await item_of(job, job.streams[server], out)
        waiting[server].append(item)
        sizes[server] += len(item[1])
        if len(waiting[server]) == PUTS or sizes[server] > PUT_BYTES:
            await flush(server)
    for server in range(len(job.streams)):
        await flush(server)


async def find(name: str, streams: Sequence[Stream]) -> Job:
    workflow = await streams[0].last("w")
    if workflow is None:
        raise StreamGone("the job has not begun")
    return Job(name, numbering(Workflow.read(workflow.data.decode())), tuple(streams))


async def names(servers: Sequence[JetStream], cluster: str) -> list[str]:
    prefix = stream_prefix(cluster)
    found: set[str] = set()
    for server in servers:
        offset = 0
        while True:
            page = await server.api("STREAM.NAMES", {"offset": offset})
            listed = page.get("streams") or []
            found |= {unquote(name[len(prefix) :]) for name in listed if name.startswith(prefix)}
            offset += len(listed)
            if not listed or offset >= page.get("total", 0):
                break
    return sorted(found)
