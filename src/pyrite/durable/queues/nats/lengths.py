"""How long the queues of a job are in NATS, as far as the servers know it now. It is for people, so
servers that lag behind are believed."""

from __future__ import annotations

from collections import Counter

from pyrite.durable.queues.nats.jobs import Job
from pyrite.durable.queues.queues import Length


async def lengths(job: Job) -> list[Length]:
    messages: Counter[int] = Counter()
    in_flight: Counter[int] = Counter()
    for stream in job.streams:
        _, counts = await stream.info("q.*")
        for subject, count in counts.items():
            messages[int(subject.rpartition(".")[2])] += count
        for queue in job.numbers.shared:
            info = await stream.consumer(queue)
            held = int(info["num_ack_pending"])
            messages[queue] += int(info["num_pending"]) + held
            in_flight[queue] += held
    return [
        Length(task, edges, sum(messages[q] for q in queues), sum(in_flight[q] for q in queues))
        for (task, edges), queues in job.numbers.by_edges().items()
    ]
