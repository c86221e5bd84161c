"""What the routes share: answers as JSON, errors as JSON, and numbers in a query."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from pyrite.errors import PyriteError
from pyrite.ui.json_response import JSONResponse
from pyrite.ui.streaming import in_thread

logger = logging.getLogger("pyrite.ui")


async def answer(read: Callable[[], Any]) -> Response:
    """The document that the function returns. It may block."""
    return JSONResponse(await in_thread(read))


def drawn(svg: str) -> Response:
    return Response(svg.encode(errors="replace"), media_type="image/svg+xml")


def missing(what: str) -> HTTPException:
    return HTTPException(404, what)


def number_in(request: Request, name: str, default: int, *, most: int) -> int:
    """A number in the query of a URL."""
    text = request.query_params.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise HTTPException(400, f"'{name}' must be a whole number")
    return min(int(text), most)


def list_in(request: Request, name: str) -> list[str]:
    """Words of a query, with commas or several times."""
    texts = request.query_params.getlist(name)
    return [word for text in texts for word in text.split(",") if word]


async def on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, headers=error.headers)


async def on_pyrite_error(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 409 if request.method == "POST" else 503)


async def on_any_error(request: Request, error: Exception) -> Response:
    logger.warning("%s %s failed", request.method, request.url.path, exc_info=error)
    return JSONResponse({"error": "the server could not answer; its log says why"}, 500)


ERRORS: dict[Any, Any] = {
    HTTPException: on_http_error,
    PyriteError: on_pyrite_error,
    Exception: on_any_error,
}
