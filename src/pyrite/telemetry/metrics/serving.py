"""The HTTP server of the endpoint, from prometheus-client."""

from __future__ import annotations

import socket
import socketserver
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app

from pyrite.telemetry.metrics.families import PyriteCollector, registry_of


def server_at(host: str, port: int) -> ThreadingWSGIServer:
    """A server that listens, and that nobody serves yet. Raises OSError."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    kind = type("Server", (_Server,), {"address_family": family})
    server: ThreadingWSGIServer = kind((host, port), _Handler)
    server.set_app(make_wsgi_app(registry_of(PyriteCollector())))
    return server


class _Server(ThreadingWSGIServer):
    timeout = 0.0  # what is ready is accepted; a client that has gone is not waited for
    block_on_close = False

    def server_bind(self) -> None:
        """As in the standard library, but it does not look up the name of the host: that can take
        seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()


class _Handler(WSGIRequestHandler):
    timeout = 10  # a client that sends nothing does not keep a thread for ever

    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are not logged."""
