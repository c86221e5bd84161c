"""Deployments of durable jobs: coordinators, peers, queues and jobs. A single job is a run."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pyrite.ui.routes.answering import answer, missing
from pyrite.ui.sources.deployments import Deployment
from pyrite.ui.sources.sources import Sources
from pyrite.ui.streaming import Moment, in_thread, stream


class DurableRoutes:
    def __init__(self, sources: Sources, stopping: asyncio.Event) -> None:
        self._sources = sources
        self._stopping = stopping

    def routes(self) -> list[Route]:
        return [
            Route("/api/durable/{key}", self._one),
            Route("/api/durable/{key}/events", self._events),
        ]

    async def _one(self, request: Request) -> Response:
        return await answer(lambda: self._found(request).document())

    async def _events(self, request: Request) -> Response:
        found = await in_thread(lambda: self._found(request))
        await in_thread(found.document)
        return stream("durable", lambda: Moment(found.document()), self._stopping)

    def _found(self, request: Request) -> Deployment:
        key = request.path_params["key"]
        found = self._sources.deployments().get(key)
        if found is None:
            raise missing(f"there are no durable jobs '{key}' here")
        return found
