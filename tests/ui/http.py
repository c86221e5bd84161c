"""A client of the page's server that sends exactly the headers that a test gives."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Http:
    """`url` is that of the server; what follows its path is not sent."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.host, self.port = parts.hostname, parts.port

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, **headers)

    def post(self, path: str, **headers: str) -> Answer:
        """As the page does it."""
        return self.send("POST", path, **{"X_Pyrite": "1", **headers})

    def send(self, method: str, path: str, **headers: str) -> Answer:
        """Names of headers have `_` for `-`."""
        with self._sent(method, path, headers) as got:
            return Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())

    @contextmanager
    def events(self, path: str) -> Iterator[Iterator[tuple[str, Any]]]:
        """The server-sent events: their names and documents, as they come."""
        with self._sent("GET", path, {}) as got:
            yield _events(got)

    @contextmanager
    def _sent(
        self, method: str, path: str, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.putrequest(method, path, skip_host="Host" in named)
            for name, value in named.items():
                connection.putheader(name, value)
            connection.endheaders()
            with connection.getresponse() as got:
                yield got
        finally:
            connection.close()


def _events(got: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in got:
        text = line.decode().rstrip("\n")
        if text.startswith("event: "):
            name = text.removeprefix("event: ")
        elif text.startswith("data: "):
            yield name, json.loads(text.removeprefix("data: "))
