"""The stream of one job on one server: its subjects, and how they are read, written and purged.

| subject, after the prefix | what it holds |
| --- | --- |
| w | the workflow; it is written last, so the job is open if it is there |
| c | the pieces of the job's code |
| q.<queue> | the messages of a queue that is read in order |
| q.<queue>.<id> | a message of a concurrent queue |
| d.<queue>.<id> | its done marker: the attempt |
| g.<queue> | nothing |
| r.<part> | the records of a sequential part |
| s.<part>.<id>.<queue> | messages that were staged for one commit |
| p.<part>.<id> | this commit has been done |
| b.<id> | the pieces of a long body or state |

A commit of taken messages expects that there is no marker yet, and that the message is still there.
So a marker need not be kept for ever, only longer than its message. A message of a batch can have
one expectation: if a commit has too few messages, some on `g` are added.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from nats.aio.msg import Msg

from pyrite.durable.queues.nats.envelopes import Range
from pyrite.durable.queues.nats.jetstream import NO_MESSAGE, ApiError, JetStream, Put
from pyrite.durable.queues.queues import QueuesError

PUTS: Final = 500
PUT_BYTES: Final = 8 * 1024 * 1024
READ_AT_ONCE: Final = 500
LAG_SECONDS: Final = 3.0


def token(text: str) -> str:
    """A text as one token of a subject, and as part of the name of a stream."""
    return quote(text, safe="").replace(".", "%2E").replace("~", "%7E") or "%"


def stream_name(cluster: str, job: str) -> str:
    return f"{stream_prefix(cluster)}{token(job)}"


def stream_prefix(cluster: str) -> str:
    return f"pyrite={token(cluster)}="


class Item(NamedTuple):
    sequence: int
    data: bytes


class Stream:
    def __init__(self, server: JetStream, cluster: str, job: str) -> None:
        self.server = server
        self.name = stream_name(cluster, job)
        self.prefix = f"pyrite.{token(cluster)}.{token(job)}"
        self.news = f"pyrite-news.{token(cluster)}.{token(job)}"

    # Its life

    async def create(self, *, replicas: int, queues: Sequence[int], ack_wait: float) -> None:
        """Raises ApiError if it is there. `queues` are the concurrent ones."""
        await self.server.api(
            f"STREAM.CREATE.{self.name}",
            {
                "name": self.name,
                "subjects": [f"{self.prefix}.>"],
                "retention": "limits",
                "storage": "file",
                "num_replicas": replicas,
                "allow_atomic": True,
                "allow_direct": True,
                "duplicate_window": 100_000_000,
                # To create a stream again with the same configuration would be no error.
                "metadata": {"opening": os.urandom(8).hex()},
            },
        )
        for queue in queues:
            config = {
                "durable_name": f"q{queue}",
                "filter_subject": f"{self.prefix}.q.{queue}.*",
                "ack_policy": "explicit",
                "ack_wait": int(ack_wait * 1e9),
                "max_ack_pending": -1,
                "max_deliver": -1,
            }
            await self.server.api(
                f"CONSUMER.DURABLE.CREATE.{self.name}.q{queue}",
                {"stream_name": self.name, "config": config},
            )

    async def delete(self) -> None:
        await self.server.api(f"STREAM.DELETE.{self.name}")

    # Reading

    async def last(self, subject: str) -> Item | None:
        """The last message on a subject, as the leader of the stream knows it."""
        return await self._get({"last_by_subj": f"{self.prefix}.{subject}"})

    async def at(self, sequence: int) -> Item | None:
        return await self._get({"seq": sequence})

    async def _get(self, request: Mapping[str, Any]) -> Item | None:
        try:
            answer = await self.server.api(f"STREAM.MSG.GET.{self.name}", request)
        except ApiError as error:
            if error.number == NO_MESSAGE:
                return None
            raise
        message = answer["message"]
        return Item(message["seq"], base64.b64decode(message.get("data", "")))

    async def read(self, subject: str, first: int, limit: int) -> list[Item]:
        """Up to `limit` messages on a subject from a sequence on."""
        request = {
            "seq": max(1, first),
            "next_by_subj": f"{self.prefix}.{subject}",
            "batch": limit,
        }
        messages = await self.server.several(self.name, f"DIRECT.GET.{self.name}", request, limit)
        return [
            Item(int((message.headers or {})["Nats-Sequence"]), message.data)
            for message in messages
        ]

    async def subjects(self, subjects: Sequence[str]) -> set[str]:
        """Those of these subjects that have a message. At most 1,000."""
        request = {
            "multi_last": [f"{self.prefix}.{subject}" for subject in subjects],
            "batch": len(subjects),
        }
        messages = await self.server.several(
            self.name, f"DIRECT.GET.{self.name}", request, len(subjects)
        )
        cut = len(self.prefix) + 1
        return {(message.headers or {})["Nats-Subject"][cut:] for message in messages}

    async def range(self, range: Range, first: int, limit: int) -> list[Item]:
        """Up to `limit` messages of a range, from a sequence on."""
        items = await self.read(range.subject, max(first, range.first), limit)
        return [item for item in items if item.sequence <= range.last]

    async def whole(self, range: Range) -> bytes:
        """All of a range in one piece."""
        pieces: list[bytes] = []
        first = range.first
        give_up = time.monotonic() + LAG_SECONDS
        while first <= range.last:
            items = await self.range(range, first, READ_AT_ONCE)
            if items:
                pieces += (item.data for item in items)
                first = items[-1].sequence + 1
            elif time.monotonic() > give_up:
                raise QueuesError(
                    f"a part of {range.subject} in stream {self.name} of NATS is missing: somebody"
                    " has deleted it, or a member of the cluster is far behind the others"
                )
            else:  # a member of the cluster that lags behind has answered
                await asyncio.sleep(0.02)
        return b"".join(pieces)

    async def pull(self, queue: int, limit: int) -> list[Msg]:
        """Messages of a concurrent queue that are now in flight."""
        return await self.server.several(
            self.name,
            f"CONSUMER.MSG.NEXT.{self.name}.q{queue}",
            {"batch": limit, "no_wait": True},
            limit,
            pull=True,
        )

    async def info(self, subjects: str = "") -> tuple[int, dict[str, int]]:
        """The last sequence, and how many messages each subject has that matches and has some."""
        found: dict[str, int] = {}
        request: dict[str, Any] = {}
        while True:
            if subjects:
                request = {"subjects_filter": f"{self.prefix}.{subjects}", "offset": len(found)}
            answer = await self.server.api(f"STREAM.INFO.{self.name}", request)
            page = answer["state"].get("subjects") or {}
            found |= {name[len(self.prefix) + 1 :]: int(count) for name, count in page.items()}
            if not page or len(found) >= answer.get("total", 0):
                return int(answer["state"]["last_seq"]), found

    async def consumer(self, queue: int) -> dict[str, Any]:
        return await self.server.api(f"CONSUMER.INFO.{self.name}.q{queue}")

    # Writing

    def put(self, subject: str, data: bytes, *, expected: int | None = None) -> Put:
        return Put(f"{self.prefix}.{subject}", data, expected)

    async def commit(self, puts: Sequence[Put], done: Callable[[], Awaitable[int | None]]) -> int:
        return await self.server.commit(self.name, puts, done)

    async def put_all(self, items: Sequence[tuple[str, bytes]], lasts: dict[str, int]) -> list[int]:
        """Stores messages once each, in as many steps as they need, and returns their sequences.
        Only the caller writes to these subjects; `lasts` has the last sequence on each, 0 if it is
        not there, and is brought up to date."""
        sequences: list[int] = []
        for chunk in _chunks(items):
            sequences += await self._put_chunk(chunk, lasts)
        return sequences

    async def _put_chunk(
        self, chunk: Sequence[tuple[str, bytes]], lasts: dict[str, int]
    ) -> Iterator[int]:
        first, final = chunk[0][0], chunk[-1][0]
        expected = lasts.get(first, 0)
        puts = [self.put(subject, data) for subject, data in chunk]
        puts[0] = self.put(*chunk[0], expected=expected)

        async def done() -> int | None:
            stored = await self.last(first)
            if stored is None or stored.sequence <= expected:
                return None
            end = await self.last(final)
            return end.sequence if end else None

        last = await self.commit(puts, done)
        sequences = range(last - len(chunk) + 1, last + 1)
        lasts.update((subject, number) for (subject, _), number in zip(chunk, sequences))
        return iter(sequences)

    async def put_long(self, subject: str, data: bytes) -> Range:
        """Stores bytes that are too long for one message."""
        size = self.server.most_bytes
        pieces = [(subject, data[at : at + size]) for at in range(0, max(1, len(data)), size)]
        sequences = await self.put_all(pieces, {})
        return Range(subject, sequences[0], sequences[-1])

    async def purge(self, subject: str, *, below: int = 0) -> None:
        """Deletes the messages on a subject, or those below a sequence."""
        await self.server.api(f"STREAM.PURGE.{self.name}", self._purge(subject, below))

    async def purge_later(self, subject: str, *, below: int = 0) -> None:
        """The same, but it may fail: a later one, or the end of the job, will do it."""
        body = json.dumps(self._purge(subject, below)).encode()
        await self.server.tell(f"$JS.API.STREAM.PURGE.{self.name}", body)

    def _purge(self, subject: str, below: int) -> dict[str, Any]:
        request: dict[str, Any] = {"filter": f"{self.prefix}.{subject}"}
        return request | {"seq": below} if below else request


def _chunks(items: Sequence[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    chunk: list[tuple[str, bytes]] = []
    size = 0
    for item in items:
        if len(chunk) == PUTS or (chunk and size + len(item[1]) > PUT_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(item)
        size += len(item[1])
    if chunk:
        yield chunk
