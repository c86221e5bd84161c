"""Pushes the metrics of batches to a Prometheus push gateway: processes that end before they could
be scraped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from pyrite.closing import Closing
from pyrite.errors import PyriteError
from pyrite.functions import shorten
from pyrite.telemetry.courier import Courier
from pyrite.telemetry.libraries import need
from pyrite.telemetry.metrics.observer import COUNTING
from pyrite.telemetry.reachable import check_reachable

PUSH_SECONDS: Final = 15.0
"""How often the metrics of runs that take longer are pushed."""
_TIMEOUT: Final = 5.0


def push_to(gateway: str, job: str | None = None) -> Pushing:
    """Counts all runs of this process from now on, and pushes the metrics to the gateway whenever
    a run has ended, and every 15 s while one is running, until it is closed.

    Each job of Pyrite has a group of its own in the gateway, `/metrics/job/NAME`, so that processes
    with different jobs do not replace each other's metrics. With `job`, the groups are
    `/metrics/job/JOB/pyrite_job/NAME`, since the gateway sets the label `job` to that of the group.

    Set `PYRITE_PUSHGATEWAY=http://host:9091` to push as long as any instance or client of the
    process is open.
    """
    if not isinstance(gateway, str) or not gateway:
        raise PyriteError(
            f"push_to() needs the URL of a push gateway, such as http://host:9091; got "
            f"{shorten(gateway)}"
        )
    url = gateway if "://" in gateway else f"http://{gateway}"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise PyriteError(
            "push_to() needs the URL of a push gateway, such as http://host:9091; what it got is "
            "none (it is not shown, because it may have a password)"
        )
    if job is not None and (not isinstance(job, str) or not job):
        raise PyriteError(f"job of push_to() must be a non-empty string; got {shorten(job)}")
    need("prometheus_client", "prometheus-client", "telemetry.push_to()")
    return Pushing(url, job)


class Pushing(Closing):
    """Made by `pyrite.telemetry.push_to()`."""

    is_gone = False

    def __init__(self, url: str, job: str | None) -> None:
        parts = urlsplit(url)
        self._place = parts.hostname
        self._job = job
        self._pushed: dict[str, bytes] = {}
        self._closed = threading.Event()
        self._courier: Courier[None] = Courier(
            "pyrite-push",
            f"the push gateway at {parts.hostname}",
            lambda: self._prepared(url),
            reach=lambda: check_reachable(url),
            pause=1.0,
            settle=COUNTING.settle,
            again=lambda: PUSH_SECONDS if COUNTING.running else None,
        )
        COUNTING.use(self._changed)

    def flush(self) -> bool:
        """Pushes now, and waits a little for it. Returns whether it was pushed."""
        self._courier.post(None)
        return self._courier.flush()

    def close(self) -> None:
        """Pushes for the last time."""
        if self._closed.is_set():
            return
        self._closed.set()
        COUNTING.leave(self._changed)
        self._courier.close()

    def _changed(self, has_ended: bool) -> None:
        if has_ended:
            self._courier.post(None)
        else:
            self._courier.wake()

    def _prepared(self, url: str) -> Callable[[list[None]], None]:
        from pyrite.telemetry.metrics.gateway import push_all

        def push(_: list[None]) -> None:
            check_reachable(url)
            push_all(url, self._job, _TIMEOUT, self._pushed)

        return push

    def __repr__(self) -> str:
        return f"<pushes to {self._place}{', closed' * self._closed.is_set()}>"
