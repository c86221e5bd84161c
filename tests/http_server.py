"""An HTTP server on this machine for tests of steps that call services. It runs on a thread of its
own, answers with chosen delays and errors, and counts."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web


class HttpServer:
    """`GET /double/21` answers 42. `?delay=` waits for so many seconds, `?status=` answers with an
    error, `?refuses=2` does so only at the first two requests for that number, and `?held=1` waits
    for `release()`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._released = asyncio.Event()
        self._changed = threading.Condition()
        self.at_once = self.most_at_once = self.answered = 0
        self.requests: Counter[str] = Counter()
        """By number."""
        self.url = ""

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self._released.set)

    def wait_for(self, requests: int) -> None:
        """Waits until the server has so many requests at the same time."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.at_once == requests, timeout=20)

    async def _double(self, request: web.Request) -> web.Response:
        self._count(1)
        try:
            if request.query.get("held"):
                await self._released.wait()
            await asyncio.sleep(float(request.query.get("delay", 0)))
            number = request.match_info["number"]
            self.requests[number] += 1
            refuses = self.requests[number] <= int(request.query.get("refuses", 0))
            status = 503 if refuses else int(request.query.get("status", 200))
            self.answered += 1
            return web.json_response(2 * int(number), status=status)
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._changed:
            self.at_once += change
            self.most_at_once = max(self.most_at_once, self.at_once)
            self._changed.notify_all()

    async def _start(self) -> web.AppRunner:
        app = web.Application()
        app.router.add_get("/double/{number}", self._double)
        runner = web.AppRunner(app, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    @contextmanager
    def running(self) -> Iterator[HttpServer]:
        runner = self._loop.run_until_complete(self._start())
        thread = threading.Thread(target=self._loop.run_forever, name="http-server")
        thread.start()
        try:
            yield self
        finally:
            self.release()
            asyncio.run_coroutine_threadsafe(runner.cleanup(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()
