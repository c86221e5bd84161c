"""A real scrape of an endpoint, parsed by prometheus-client; and a push gateway that keeps what it
gets."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, ...], float]
"""By name and by the values of the labels."""


def scrape(url: str) -> Samples:
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return samples_of(answer.read().decode())


def samples_of(text: str) -> Samples:
    return {
        (sample.name, *(sample.labels[key] for key in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scrape_labels(url: str) -> dict[str, set[str]]:
    """The labels of each metric of a scrape."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        text = answer.read().decode()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


class Taking:
    """An HTTP server that keeps the path and the body of each request."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, bytes]] = []
        self.url = ""
        self._changed = threading.Condition()

    def take(self, path: str, body: bytes) -> None:
        with self._changed:
            self.taken.append((path, body))
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.taken) >= count, timeout=20)


@contextmanager
def taking(status: int = 200) -> Iterator[Taking]:
    found = Taking()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.take(self.path, body)
            self.send_response(status)
            self.end_headers()

        do_PUT = do_POST  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="taking")
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
