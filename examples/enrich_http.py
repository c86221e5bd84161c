"""Adds to each order what a web service knows about its customer, then adds up by country. Up to 50
requests are in flight at the same time, over one HTTP session for each member. The web service is a
small server that this program starts; it answers after 20 ms."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import aiohttp

from pyrite import Pipeline, agg

ORDERS = [{"id": n, "customer": f"c{n % 30}", "total": 10 + n % 7} for n in range(1000)]
COUNTRIES = ["Chile", "Ghana", "Norway"]


async def with_country(session: aiohttp.ClientSession, order: dict[str, Any]) -> dict[str, Any]:
    async with session.get(f"/customers/{order['customer']}") as answer:
        customer = await answer.json()
    return {**order, "country": customer["country"]}


def totals(url: str) -> list[tuple[str, int, int]]:
    """The number of orders and their total, by country."""
    orders = Pipeline().read_from(ORDERS)
    enriched = orders.map_with(
        lambda: aiohttp.ClientSession(url, raise_for_status=True), with_country, in_flight=50
    )
    by_country = enriched.group_by(lambda order: order["country"])
    return by_country.aggregate(agg.count(), agg.sum(lambda order: order["total"])).collect()


class Customers(BaseHTTPRequestHandler):
    """`GET /customers/c7` answers with a JSON object about the customer c7."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        time.sleep(0.02)
        number = int(self.path.removeprefix("/customers/c"))
        body = json.dumps({"country": COUNTRIES[number % len(COUNTRIES)]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Prints nothing."""


class CustomersServer(ThreadingHTTPServer):
    request_queue_size = 100


@contextmanager
def served() -> Iterator[str]:
    """The URL of the web service, which runs in this block."""
    with CustomersServer(("127.0.0.1", 0), Customers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    with served() as url:
        for country, count, total in sorted(totals(url)):
            print(f"{country}: {count} orders, {total} in all")
