"""The application: the page, its files, and the routes of the JSON API."""

from __future__ import annotations

import asyncio
import mimetypes
import socket
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from pyrite.ui.guarding import Guarded
from pyrite.ui.json_response import JSONResponse
from pyrite.ui.routes.answering import ERRORS, missing
from pyrite.ui.routes.durable import DurableRoutes
from pyrite.ui.routes.runs import RunRoutes
from pyrite.ui.routes.workloads import WorkloadRoutes
from pyrite.ui.security import Guard
from pyrite.ui.sources.sources import Sources
from pyrite.ui.streaming import in_thread
from pyrite.version import __version__

STATIC: Final = Path(__file__).parent / "static"

# Some systems say that a script is plain text, and a browser would not run it.
mimetypes.add_type("text/javascript", ".js")


def make_app(sources: Sources, guard: Guard, stopping: asyncio.Event) -> ASGIApp:
    """`stopping` ends the streams of events."""

    async def about(request: Request) -> Response:
        return JSONResponse(
            {
                "version": __version__,
                "host": socket.gethostname(),
                "sources": await in_thread(sources.labels),
                "read_only": guard.is_read_only,
            }
        )

    async def unknown(request: Request) -> Response:
        raise missing(f"there is nothing at {request.url.path}")

    async def page(request: Request) -> Response:
        """The page itself finds out what to show at an address."""
        return FileResponse(STATIC / "index.html", headers={"Cache-Control": "no-cache"})

    routes: list[BaseRoute] = [
        Route("/api/about", about),
        *RunRoutes(sources.runs, stopping).routes(),
        *WorkloadRoutes(sources.workloads, stopping).routes(),
        *DurableRoutes(sources, stopping).routes(),
        Route("/api/{path:path}", unknown, methods=["GET", "POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
        Route("/{path:path}", page),
    ]
    return Guarded(Starlette(routes=routes, exception_handlers=ERRORS), guard)
