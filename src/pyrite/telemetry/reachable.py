"""Whether anybody listens at a URL. The libraries try for many seconds to reach one where nobody
does; this knows it at once."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit
from urllib.request import getproxies

CONNECT_SECONDS = 1.0


def check_reachable(url: str) -> None:
    """Raises OSError if nobody listens there. Where a proxy is used, nothing is known."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or parts.hostname is None or getproxies():
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname, port), CONNECT_SECONDS).close()
    except OSError as error:
        raise ConnectionError(f"nobody answers at {parts.hostname}:{port} ({error})") from error
