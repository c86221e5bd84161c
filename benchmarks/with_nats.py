"""Counting with a consumer of NATS JetStream that was written by hand, on two processes: each takes
batches, maps them, and sends each pair to the stream of the process that counts its key. Then each
counts what it was sent. At least once: a batch that is delivered twice is counted twice.

Only the child process of `peers` imports this. The URL of the server is in NATS_URL.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
from multiprocessing.connection import Connection
from time import perf_counter

from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig

import nats
from benchmarks.counting import BATCH, counts, pair

WORKERS = 2
FETCH = 16


def run(items: int) -> float:
    url = os.environ["NATS_URL"]
    batches = asyncio.run(_publish(url, items))
    start = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for worker in range(WORKERS):
        ours, theirs = start.Pipe()
        process = start.Process(target=_work, args=(url, worker, batches, theirs), daemon=True)
        process.start()
        pipes.append(ours)
        processes.append(process)
    for pipe in pipes:
        pipe.recv()
    started = perf_counter()
    for pipe in pipes:
        pipe.send("go")
    total: dict[int, int] = {}
    for pipe in pipes:
        total |= pipe.recv()
    taken = perf_counter() - started
    for process in processes:
        process.join()
    if total != counts(items):
        raise AssertionError("its counts are wrong")
    return taken


async def _publish(url: str, items: int) -> int:
    connection = await nats.connect(url)
    stream = connection.jetstream()
    for name in ("in", *(f"out{worker}" for worker in range(WORKERS))):
        try:
            await stream.delete_stream(name)
        except nats.js.errors.NotFoundError:
            pass
        await stream.add_stream(StreamConfig(name=name, subjects=[name]))
        consumer = ConsumerConfig(durable_name=name, ack_wait=30, ack_policy=AckPolicy.EXPLICIT)
        await stream.add_consumer(name, consumer)
    number = 0
    for at in range(0, items, BATCH):
        await stream.publish("in", pickle.dumps(range(at, min(at + BATCH, items))))
        number += 1
    await connection.close()
    return number


def _work(url: str, worker: int, batches: int, pipe: Connection) -> None:
    pipe.send("ready")
    pipe.recv()
    pipe.send(asyncio.run(_consume(url, worker, batches)))


async def _consume(url: str, worker: int, batches: int) -> dict[int, int]:
    connection = await nats.connect(url)
    stream = connection.jetstream()
    taking = await stream.pull_subscribe_bind("in", stream="in")
    counting = await stream.pull_subscribe_bind(f"out{worker}", stream=f"out{worker}")
    counted: dict[int, int] = {}
    came = 0
    while came < batches:
        try:
            for message in await taking.fetch(FETCH, timeout=0.02):
                sent: list[list[tuple[int, int]]] = [[] for _ in range(WORKERS)]
                for number in pickle.loads(message.data):
                    made = pair(number)
                    sent[made[0] % WORKERS].append(made)
                for to, pairs in enumerate(sent):
                    await stream.publish(f"out{to}", pickle.dumps(pairs))
                await message.ack()
        except nats.errors.TimeoutError:
            pass
        try:
            for message in await counting.fetch(FETCH, timeout=0.02):
                for key, one in pickle.loads(message.data):
                    counted[key] = counted.get(key, 0) + one
                came += 1
                await message.ack()
        except nats.errors.TimeoutError:
            pass
    await connection.close()
    return counted
