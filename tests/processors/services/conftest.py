"""A new HTTP server for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http_server import HttpServer


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer().running() as running:
        yield running
