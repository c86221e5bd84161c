"""A server with the documents that a test gives it, behind the same addresses and with the same
policy for scripts as the real one."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import pyrite.ui
from pyrite.drawing import Arrow, Box, layered
from pyrite.watching.views import RunView
from tests.ui import scenes

STATIC = Path(pyrite.ui.__file__).parent / "static"
POLICY = "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"


class Stub:
    """Give it runs, workloads and deployments at any time; open pages are told at once."""

    def __init__(self) -> None:
        self.runs: dict[str, RunView] = {}
        self.workloads: dict[str, dict[str, Any]] = {}
        self.deployments: dict[str, dict[str, Any]] = {}
        self.logs: dict[str, list[dict[str, Any]]] = {}
        self.posts: list[tuple[str, str | None]] = []
        self.is_down = False
        self.problem: str | None = None
        """Why the documents cannot be read now."""
        self.most_rows = 1000
        app = Starlette(
            routes=[
                Route("/api/about", self._about),
                Route("/api/runs", self._runs),
                Route("/api/events", self._events(self._list, "runs")),
                Route("/api/runs/{id}", self._run),
                Route("/api/runs/{id}/graph.svg", self._graph),
                Route("/api/runs/{id}/log", self._log),
                Route("/api/runs/{id}/cancel", self._cancel, methods=["POST"]),
                Route("/api/runs/{id}/events", self._events(self._document, "run")),
                Route("/api/workloads", self._workloads),
                Route("/api/workloads/{key}", self._workload),
                Route("/api/workloads/{key}/graph.svg", self._workload_graph),
                Route("/api/workloads/{key}/jobs/{job}/log", self._job_log),
                Route("/api/workloads/{key}/cancel", self._cancel, methods=["POST"]),
                Route(
                    "/api/workloads/{key}/events",
                    self._events(lambda r: self.workloads[r.path_params["key"]], "workload"),
                ),
                Route("/api/durable/{key}", self._durable),
                Route(
                    "/api/durable/{key}/events",
                    self._events(lambda r: self.deployments[r.path_params["key"]], "durable"),
                ),
                Mount("/static", StaticFiles(directory=STATIC)),
                Route("/{path:path}", _page),
            ]
        )
        config = uvicorn.Config(app, port=0, log_level="critical", timeout_graceful_shutdown=0)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"

    def clear(self) -> None:
        for each in (self.runs, self.workloads, self.deployments, self.logs):
            each.clear()
        self.posts.clear()
        self.is_down = False
        self.problem = None
        self.most_rows = 1000

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)

    def add(self, *runs: RunView) -> None:
        self.runs.update((run.id, run) for run in runs)

    def _given(self, request: Request) -> object:
        """What tells whether there is something new: the objects that a test has given."""
        all_of_them = (self.runs, self.workloads, self.deployments)
        return [id(value) for each in all_of_them for value in each.values()]

    def _about(self, request: Request) -> Response:
        sources = [{"kind": "runs", "key": "here", "label": "this machine"}]
        sources += [{"kind": "workload", "key": k, "label": k} for k in self.workloads]
        sources += [{"kind": "durable", "key": k, "label": k} for k in self.deployments]
        return JSONResponse(
            {"version": "0.14", "host": "laptop", "sources": sources, "read_only": False}
        )

    def _list(self, request: Request) -> dict[str, Any]:
        rows = [scenes.row(run) for run in self.runs.values()]
        rows.sort(key=lambda row: -row["submitted"])
        return {"runs": rows[: self.most_rows], "total": len(rows)}

    def _runs(self, request: Request) -> Response:
        return JSONResponse(self._list(request))

    def _document(self, request: Request) -> dict[str, Any]:
        return scenes.document(self.runs[request.path_params["id"]])

    def _run(self, request: Request) -> Response:
        if request.path_params["id"] not in self.runs:
            return JSONResponse({"error": "There is no run of this id."}, status_code=404)
        return JSONResponse(self._document(request))

    def _graph(self, request: Request) -> Response:
        run = self.runs[request.path_params["id"]]
        boxes = [Box(vertex.name) for vertex in run.vertices]
        arrows = [Arrow(edge.source, edge.destination, edge.label) for edge in run.edges]
        return _svg(boxes, arrows, request, "vertices")

    def _log(self, request: Request) -> Response:
        after = int(request.query_params.get("after", "0"))
        lines = self.logs.get(request.path_params["id"], [])
        return JSONResponse({"lines": lines[after:], "next": len(lines)})

    def _cancel(self, request: Request) -> Response:
        self.posts.append((request.url.path, request.headers.get("x-pyrite")))
        return JSONResponse({"state": "cancelling"}, status_code=202)

    def _workloads(self, request: Request) -> Response:
        return JSONResponse({"workloads": list(self.workloads.values())})

    def _workload(self, request: Request) -> Response:
        return JSONResponse(self.workloads[request.path_params["key"]])

    def _workload_graph(self, request: Request) -> Response:
        found = self.workloads[request.path_params["key"]]
        boxes = [Box(job["job"]) for job in found["jobs"]]
        return _svg(boxes, [Arrow(a, b) for a, b in found["edges"]], request, "jobs", meters=False)

    def _job_log(self, request: Request) -> Response:
        job = request.path_params["job"]
        return JSONResponse({"job": job, "log": f"output of {job}\n", "traceback": None})

    def _durable(self, request: Request) -> Response:
        return JSONResponse(self.deployments[request.path_params["key"]])

    def _events(
        self, read: Callable[[Request], dict[str, Any]], name: str
    ) -> Callable[[Request], Any]:
        async def handle(request: Request) -> Response:
            if self.is_down:
                return Response(status_code=503)

            async def events() -> AsyncIterator[str]:
                last: object = None
                while not (
                    self._server.should_exit or self.is_down or await request.is_disconnected()
                ):
                    seen = self.problem or self._given(request)
                    if seen != last and self.problem:
                        yield f"event: problem\ndata: {json.dumps({'error': self.problem})}\n\n"
                        last = seen
                    elif seen != last:
                        found = read(request)
                        yield f"event: {name}\ndata: {json.dumps(found)}\n\n"
                        last = seen
                        if name == "run" and found["state"] not in ("starting", "running"):
                            yield "event: end\ndata: null\n\n"
                            return
                    await asyncio.sleep(0.05)

            return StreamingResponse(events(), media_type="text/event-stream")

        return handle


def _svg(
    boxes: list[Box], arrows: list[Arrow], request: Request, noun: str, *, meters: bool = True
) -> Response:
    unfold = request.query_params.getlist("unfold")
    return Response(
        layered.svg(boxes, arrows, unfold=unfold, noun=noun, meters=meters),
        media_type="image/svg+xml",
    )


async def _page(request: Request) -> Response:
    return FileResponse(STATIC / "index.html", headers={"Content-Security-Policy": POLICY})
