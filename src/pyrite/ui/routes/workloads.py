"""Workloads: the list, one of them, its graph, the log of a job, and how it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pyrite.ui.json_response import JSONResponse
from pyrite.ui.routes.answering import answer, drawn, missing
from pyrite.ui.sources.workloads import UnknownWorkload, Workloads
from pyrite.ui.streaming import Moment, in_thread, stream
from pyrite.workload.outcomes import NoResult

T = TypeVar("T")


class WorkloadRoutes:
    def __init__(self, workloads: Workloads, stopping: asyncio.Event) -> None:
        self._workloads = workloads
        self._stopping = stopping

    def routes(self) -> list[Route]:
        return [
            Route("/api/workloads", self._list),
            Route("/api/workloads/{key}", self._one),
            Route("/api/workloads/{key}/events", self._events),
            Route("/api/workloads/{key}/graph.svg", self._graph),
            Route("/api/workloads/{key}/jobs/{job:path}/log", self._log),
            Route("/api/workloads/{key}/cancel", self._cancel, methods=["POST"]),
        ]

    async def _list(self, request: Request) -> Response:
        return await answer(lambda: {"workloads": self._workloads.rows()})

    async def _one(self, request: Request) -> Response:
        key = request.path_params["key"]
        return await answer(lambda: _found(lambda: self._workloads.document(key)))

    async def _events(self, request: Request) -> Response:
        key = request.path_params["key"]
        await in_thread(lambda: _found(lambda: self._workloads.document(key)))
        return stream("workload", lambda: Moment(self._workloads.document(key)), self._stopping)

    async def _graph(self, request: Request) -> Response:
        key = request.path_params["key"]
        unfold = frozenset(request.query_params.getlist("unfold"))
        svg = await in_thread(lambda: _found(lambda: self._workloads.graph(key, unfold)))
        return drawn(svg)

    async def _log(self, request: Request) -> Response:
        key, job = request.path_params["key"], request.path_params["job"]
        return await answer(lambda: _found(lambda: self._workloads.log(key, job)))

    async def _cancel(self, request: Request) -> Response:
        key = request.path_params["key"]
        phase = await in_thread(lambda: _found(lambda: self._workloads.cancel(key)))
        if phase is None:
            raise HTTPException(409, "the run has ended")
        return JSONResponse({"state": phase}, 202)


def _found(read: Callable[[], T]) -> T:
    try:
        return read()
    except (UnknownWorkload, NoResult) as error:
        raise missing(str(error)) from error
