"""The part of the server that sees each request first: refuses, logs in, adds headers."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pyrite.ui.json_response import JSONResponse
from pyrite.ui.security import HEADERS, READING, Guard, Refusal


class Guarded:
    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # there are no web sockets here
            return
        answer: ASGIApp = self._decide(Request(scope)) or self._app

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await answer(scope, receive, send_with_headers)

    def _decide(self, request: Request) -> Response | None:
        """The answer of the guard; None if the request goes on to the application."""
        guard, query = self._guard, request.query_params
        headers = dict(request.headers)
        refusal = guard.refusal(request.method, request.url.path, headers, request.cookies)
        is_login = "token" in query and guard.token is not None and request.method in READING
        if is_login and (refusal is None or refusal.status == 401):
            if guard.is_token(query["token"]):
                return self._logged_in(request)
            refusal = Refusal(401, "the token is wrong; open the URL that the server printed")
        return None if refusal is None else _answer(request, refusal)

    def _logged_in(self, request: Request) -> Response:
        """The same page, without the token in its address."""
        pairs = parse_qsl(request.url.query, keep_blank_values=True)
        rest = urlencode([(name, value) for name, value in pairs if name != "token"])
        path = "/" + quote(request.url.path.lstrip("/"))  # "//name" would be another host
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
        answer.set_cookie(
            self._guard.cookie, self._guard.session, httponly=True, samesite="strict", path="/"
        )
        return answer


def _answer(request: Request, refusal: Refusal) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": refusal.reason}, refusal.status)
    return PlainTextResponse(f"{refusal.reason}\n", refusal.status)
