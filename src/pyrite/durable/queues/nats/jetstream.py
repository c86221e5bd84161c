"""The connection to one NATS server or cluster: requests of JetStream that are repeated while it is
away, answers of several messages, and atomic batches."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from pyrite.durable.queues.queues import QueuesError

T = TypeVar("T")

ANSWER_SECONDS: Final = 5.0
"""A batch may take so long; after that it is found out whether it is there."""
ASK_AGAIN_SECONDS: Final = 1.5
"""A cluster without a leader drops requests silently, so they are repeated soon."""
CONNECT_SECONDS: Final = 5.0
LONGEST_BATCH: Final = 1000
"""The server takes no more messages in one atomic batch."""

EXPECTED: Final = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_OF: Final = "Nats-Expected-Last-Subject-Sequence-Subject"
BATCH: Final = "Nats-Batch-Id"
BATCH_SEQUENCE: Final = "Nats-Batch-Sequence"
BATCH_COMMIT: Final = "Nats-Batch-Commit"

NO_JETSTREAM: Final = "it runs without JetStream; start it with --jetstream and --store_dir"

# Codes of errors of JetStream
STALE: Final = {10071, 10164}
NO_STREAM: Final = 10059
NO_MESSAGE: Final = 10037
NO_CONSUMER: Final = 10014
NAME_IN_USE: Final = 10058
NOT_ENABLED: Final = {10039, 10076}
TOO_FEW_SERVERS: Final = 10005
TRY_AGAIN: Final = {TOO_FEW_SERVERS, 10176, 10210, 10211}
"""A batch of which a message was lost, or that came while too many others were under way. A server
that is away comes back."""

_FULL: Final = "; its storage is full, so raise max_file_store or make room on its disk"
HINTS: Final = {
    TOO_FEW_SERVERS: "; a new job needs as many servers of the cluster as its queues have replicas,"
    " so start those that do not run",
    10023: _FULL,
    10047: _FULL,
    10077: _FULL,
}


class Stale(Exception):
    """A batch was refused, because an expected sequence is not the last one."""


class StreamGone(Exception):
    """The stream, or a consumer of it, is not there."""


class Unanswered(Exception):
    """What was asked may have happened or not."""


class ApiError(Exception):
    def __init__(self, error: Mapping[str, Any]) -> None:
        self.code = int(error.get("code", 0))
        self.number = int(error.get("err_code", 0))
        super().__init__(str(error.get("description", error)))


@dataclass(frozen=True, slots=True)
class Put:
    """A message of a batch. `expected` is the sequence that the last message on `expected_of`, or
    else on its own subject, must have."""

    subject: str
    data: bytes
    expected: int | None = None
    expected_of: str = ""


class JetStream:
    """All methods are for the thread that drives the event loop."""

    def __init__(self, urls: Sequence[str], *, patience: float) -> None:
        self.urls = list(urls)
        self._patience = patience
        self._client = Client()
        self._inbox = ""
        self._waiting: dict[str, asyncio.Queue[Msg | None]] = {}
        self._last_error: Exception | None = None

    async def connect(self) -> None:
        client = self._client
        try:
            await asyncio.wait_for(
                client.connect(
                    self.urls,
                    name="pyrite",
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=0.1,  # type: ignore[arg-type]
                    connect_timeout=2,
                    pending_size=0,  # nothing is sent late
                    error_cb=self._noted,
                    disconnected_cb=self._lost,
                    skip_subject_validation=True,
                ),
                min(self._patience, CONNECT_SECONDS),
            )
        except (NatsError, OSError, TimeoutError) as error:
            await client.close()
            raise self._away(error) from error
        self._inbox = client.new_inbox()
        await client.subscribe(f"{self._inbox}.*", cb=self._answered)

    async def close(self) -> None:
        if not self._client.is_closed:
            await self._client.close()

    @property
    def most_bytes(self) -> int:
        """What fits into one message, beside headers."""
        return int(self._client.max_payload) - 8192

    async def listen(self, subject: str, heard: Callable[[Msg], Awaitable[None]]) -> None:
        await self._client.subscribe(subject, cb=heard)
        await self.retried(lambda: self._client.flush(timeout=int(ANSWER_SECONDS)))

    async def tell(self, subject: str, data: bytes = b"") -> None:
        """Sends, and does not care whether it comes."""
        try:
            await self._client.publish(subject, data)
        except NatsError:
            pass

    async def flush(self) -> None:
        """Waits until what was told has been sent."""
        try:
            await self._client.flush(timeout=int(ANSWER_SECONDS))
        except NatsError:
            pass

    async def api(self, subject: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A request of the API of JetStream, which may be repeated."""
        data = json.dumps(body).encode() if body is not None else b""

        async def ask() -> dict[str, Any]:
            (message,) = await self._ask(
                f"$JS.API.{subject}", data, most=1, seconds=ASK_AGAIN_SECONDS
            )
            if _status(message) == "503":
                raise Unanswered(NO_JETSTREAM)
            answer: dict[str, Any] = json.loads(message.data)
            if "error" in answer:
                raise ApiError(answer["error"])
            return answer

        return await self.retried(ask)

    async def several(
        self, stream: str, subject: str, body: Mapping[str, Any], most: int, *, pull: bool = False
    ) -> list[Msg]:
        """The messages that answer a request, up to the one that says that there are no more."""
        data = json.dumps(body).encode()

        async def ask() -> list[Msg]:
            if pull:
                messages = await self._pull(f"$JS.API.{subject}", data, most)
            else:
                messages = await self._ask(f"$JS.API.{subject}", data, most=most)
            if messages and _status(messages[-1]) == "503":
                await self.api(f"STREAM.INFO.{stream}")  # raises if there is none
                raise Unanswered("no server answers")
            return [message for message in messages if not _status(message)]

        return await self.retried(ask)

    async def confirmed(self, subject: str, data: bytes) -> None:
        """Waits until the server has got this, but not for long."""
        try:
            await self._ask(subject, data, most=1, seconds=ASK_AGAIN_SECONDS)
        except (Unanswered, NatsError):
            pass

    async def commit(
        self, stream: str, puts: Sequence[Put], done: Callable[[], Awaitable[int | None]]
    ) -> int:
        """Stores all messages in one step, and returns the sequence of the last. `done` tells after
        a lost answer whether they are there, and the sequence. Raises Stale if an expectation does
        not hold."""
        is_in_doubt = False

        async def act() -> int:
            nonlocal is_in_doubt
            if is_in_doubt and (found := await done()) is not None:
                return found
            try:
                return await self._send(stream, puts)
            except Unanswered:
                is_in_doubt = True
                raise
            except Stale:
                if is_in_doubt and (found := await done()) is not None:
                    return found
                raise

        return await self.retried(act)

    async def _send(self, stream: str, puts: Sequence[Put]) -> int:
        id = os.urandom(10).hex()
        for number, put in enumerate(puts, 1):
            # One message alone needs no batch, which would cost the server a file.
            headers = {BATCH: id, BATCH_SEQUENCE: str(number)} if len(puts) > 1 else {}
            if put.expected is not None:
                headers[EXPECTED] = str(put.expected)
                if put.expected_of:
                    headers[EXPECTED_OF] = put.expected_of
            if number < len(puts):
                await self._publish(put.subject, put.data, headers=headers)
        if len(puts) > 1:
            headers[BATCH_COMMIT] = "1"
        (message,) = await self._ask(put.subject, put.data, most=1, headers=headers)
        if _status(message) == "503":
            await self.api(f"STREAM.INFO.{stream}")
            raise Unanswered("no server answers")
        answer = json.loads(message.data)
        if "error" not in answer:
            return int(answer["seq"])
        error = ApiError(answer["error"])
        if error.number in STALE:
            raise Stale(str(error))
        raise error

    async def _publish(
        self, subject: str, data: bytes, *, reply: str = "", headers: dict[str, str] | None = None
    ) -> None:
        try:
            await self._client.publish(subject, data, reply=reply, headers=headers)
        except NatsError as error:
            raise Unanswered(str(error)) from error

    async def _ask(
        self,
        subject: str,
        data: bytes,
        *,
        most: int,
        headers: dict[str, str] | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> list[Msg]:
        name = os.urandom(8).hex()
        queue = self._waiting[name] = asyncio.Queue()
        try:
            await self._publish(subject, data, reply=f"{self._inbox}.{name}", headers=headers)
            return await _collected(queue, most, seconds)
        finally:
            del self._waiting[name]

    async def _pull(self, subject: str, data: bytes, most: int) -> list[Msg]:
        """Messages of a consumer keep the subjects of the stream, so their answers need a
        subscription of their own."""
        name = os.urandom(8).hex()
        queue = self._waiting[name] = asyncio.Queue()
        inbox = self._client.new_inbox()
        subscription = await self._client.subscribe(inbox, cb=_into(queue))
        try:
            await self._publish(subject, data, reply=inbox)
            return await _collected(queue, most, ASK_AGAIN_SECONDS)
        finally:
            del self._waiting[name]
            if self._client.is_connected:
                await subscription.unsubscribe()

    async def retried(self, act: Callable[[], Awaitable[T]]) -> T:
        """Repeats while the server is away, for as long as the patience lasts."""
        give_up = time.monotonic() + self._patience
        pause = 0.01
        while True:
            try:
                return await act()
            except (Unanswered, NatsError, OSError, TimeoutError) as error:
                if time.monotonic() > give_up:
                    raise self._away(error) from error
            except ApiError as error:
                if error.number in (NO_STREAM, NO_CONSUMER):
                    raise StreamGone(str(error)) from error
                if error.number in NOT_ENABLED:
                    raise self._away(Unanswered(NO_JETSTREAM)) from error
                if error.number in (NO_MESSAGE, NAME_IN_USE):
                    raise
                is_temporary = error.code == 503 or error.number in TRY_AGAIN
                if not is_temporary or time.monotonic() > give_up:
                    hint = HINTS.get(error.number, "")
                    raise QueuesError(f"NATS at {self._where} refused: {error}{hint}") from error
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.25)

    @property
    def _where(self) -> str:
        return ", ".join(self.urls)

    def _away(self, error: BaseException) -> QueuesError:
        reason = str(error) or str(self._last_error or "") or type(error).__name__
        return QueuesError(
            f"NATS at {self._where} does not answer ({reason}); check that nats-server runs there"
            " and that this machine can reach it. Nothing that was confirmed is lost"
        )

    async def _answered(self, message: Msg) -> None:
        queue = self._waiting.get(message.subject.rpartition(".")[2])
        if queue is not None:
            queue.put_nowait(message)

    async def _lost(self) -> None:
        for queue in self._waiting.values():
            queue.put_nowait(None)

    async def _noted(self, error: Exception) -> None:
        self._last_error = error


async def _collected(queue: asyncio.Queue[Msg | None], most: int, seconds: float) -> list[Msg]:
    messages: list[Msg] = []
    try:
        while len(messages) < most:
            message = await asyncio.wait_for(queue.get(), seconds)
            if message is None:
                raise Unanswered("the connection was lost")
            messages.append(message)
            if _status(message):
                break
    except TimeoutError:
        raise Unanswered(f"no answer within {seconds:g} seconds") from None
    return messages


def _into(queue: asyncio.Queue[Msg | None]) -> Callable[[Msg], Awaitable[None]]:
    async def put(message: Msg) -> None:
        queue.put_nowait(message)

    return put


def _status(message: Msg) -> str:
    return (message.headers or {}).get("Status", "") if not message.data else ""
