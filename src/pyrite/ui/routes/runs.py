"""Runs: the list, one of them, its graph, its log, and how it is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pyrite.ui.graphs import graph_of_run
from pyrite.ui.json_response import JSONResponse
from pyrite.ui.routes.answering import answer, drawn, list_in, missing, number_in
from pyrite.ui.sources.runs import Found, Runs
from pyrite.ui.streaming import Moment, in_thread, stream
from pyrite.watching.history import ALL, newest

ROWS: Final = 200
ROWS_MOST: Final = 10_000
LINES_MOST: Final = 5000


class RunRoutes:
    def __init__(self, runs: Runs, stopping: asyncio.Event) -> None:
        self._runs = runs
        self._stopping = stopping

    def routes(self) -> list[Route]:
        return [
            Route("/api/runs", self._list),
            Route("/api/events", self._list_events),
            Route("/api/runs/{id}", self._one),
            Route("/api/runs/{id}/events", self._one_events),
            Route("/api/runs/{id}/graph.svg", self._graph),
            Route("/api/runs/{id}/log", self._log),
            Route("/api/runs/{id}/cancel", self._cancel, methods=["POST"]),
        ]

    async def _list(self, request: Request) -> Response:
        return await answer(self._reads_list(request))

    async def _list_events(self, request: Request) -> Response:
        read = self._reads_list(request)
        return stream("runs", lambda: Moment(read()), self._stopping)

    def _reads_list(self, request: Request) -> Callable[[], dict[str, Any]]:
        search = request.query_params.get("search", "")
        states, kinds = list_in(request, "state"), list_in(request, "kind")
        limit = number_in(request, "limit", ROWS, most=ROWS_MOST)

        def read() -> dict[str, Any]:
            rows = self._runs.rows(search=search, states=states, kinds=kinds)
            return {"runs": [row.to_json() for row in rows[:limit]], "total": len(rows)}

        return read

    async def _one(self, request: Request) -> Response:
        return await answer(lambda: self._found(request).to_json())

    async def _one_events(self, request: Request) -> Response:
        """The first document has the whole history; those after it have the new points alone, and
        in `history_after` the time of the last one before them."""
        await in_thread(lambda: self._found(request))
        sent = ALL

        def read() -> Moment:
            nonlocal sent
            found = self._runs.find(request.path_params["id"])
            if found is None:  # it was deleted in the meantime
                return Moment({}, is_last=True)
            document = found.to_json(sent)
            if sent != ALL:
                document["history_after"] = sent
            sent = max(sent, newest(document["history"]))
            return Moment(document, is_last=found.view.has_ended)

        return stream("run", read, self._stopping)

    async def _graph(self, request: Request) -> Response:
        unfold = frozenset(request.query_params.getlist("unfold"))
        svg = await in_thread(lambda: graph_of_run(self._found(request).view, unfold))
        return drawn(svg)

    async def _log(self, request: Request) -> Response:
        after = number_in(request, "after", 0, most=10**18)

        def read() -> dict[str, Any]:
            found = self._found(request)
            lines = found.source.log(found.view.id, after)[-LINES_MOST:]
            return {
                "lines": [line.to_json() for line in lines],
                "next": lines[-1].n + 1 if lines else after,
            }

        return await answer(read)

    async def _cancel(self, request: Request) -> Response:
        def cancel() -> str:
            found = self._found(request)
            id = found.view.id
            try:
                if not found.can_cancel or not found.source.cancel(id):
                    raise HTTPException(409, f"run {id} has ended: it is {_how(found)}")
            except OSError as error:  # it is of another user, or the folder is read-only
                reason = error.strerror or error
                raise HTTPException(
                    409, f"run {id} cannot be cancelled from here: {reason}"
                ) from error
            return found.view.state

        return JSONResponse({"state": await in_thread(cancel)}, 202)

    def _found(self, request: Request) -> Found:
        id = request.path_params["id"]
        found = self._runs.find(id)
        if found is None:
            raise missing(f"there is no run '{id}'; it may be so old that it was deleted")
        return found


def _how(found: Found) -> str:
    state = found.view.state
    return state if found.view.has_ended else "ending"
