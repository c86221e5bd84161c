"""Pushes to a gateway, with prometheus-client."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from prometheus_client.exposition import basic_auth_handler, default_handler, pushadd_to_gateway

from pyrite.functions import encodable
from pyrite.telemetry.metrics.families import PyriteCollector, registry_of
from pyrite.telemetry.metrics.observer import COUNTING


def push_all(url: str, job: str | None, timeout: float, pushed: dict[str, bytes]) -> None:
    """Pushes the metrics of every job to a group of its own, unless they are those that were
    `pushed` before. Raises OSError."""
    url, send = _split(url)
    with COUNTING.totals() as totals:
        names = [each.job for each in totals]
    for name in names:
        # Adds, and does not replace the group: when a run fails, the gateway keeps the time of the
        # last success, which another process has pushed.
        pushadd_to_gateway(
            url,
            job=encodable(name) if job is None else job,
            registry=registry_of(PyriteCollector(job=name)),
            grouping_key={} if job is None else {"pyrite_job": encodable(name)},
            timeout=timeout,
            handler=partial(_send_if_new, send, pushed),
        )


def _send_if_new(
    send: Callable[..., Callable[[], None]],
    pushed: dict[str, bytes],
    *,
    url: str,
    data: bytes,
    **how: Any,
) -> Callable[[], None]:
    def handle() -> None:
        if pushed.get(url) != data:
            send(url=url, data=data, **how)()
            pushed[url] = data

    return handle


def _split(url: str) -> tuple[str, Callable[..., Any]]:
    """The URL without user and password, and what sends these."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, default_handler
    place = parts.netloc.rpartition("@")[2]
    user, password = unquote(parts.username), unquote(parts.password or "")
    return parts._replace(netloc=place).geturl(), partial(
        basic_auth_handler, username=user, password=password
    )
