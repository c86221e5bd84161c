"""Who may see the page, and who may change something. Pure decisions; `guarding.py` applies them.

On loopback all users of the machine may look, unless there is a token; elsewhere a token is needed.
A page of another site must not read or change anything through the user's browser: so the name in
`Host` must be one of ours (else a name of the attacker's could point here, "DNS rebinding"), the
origin of a request must be this page, and a change needs a header that forms cannot send.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from pyrite.errors import PyriteError

READING: Final = ("GET", "HEAD")
LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
CHANGE_HEADER: Final = "x-pyrite"
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Sent with each answer: nothing is loaded from elsewhere, and no other page shows this one."""


@dataclass(frozen=True, slots=True)
class Refusal:
    status: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """`host` is what the server is bound to. With a token, a browser logs in once, by the URL with
    `?token=`, and then sends a cookie; a program sends `Authorization: Bearer TOKEN`."""

    host: str
    port: int
    token: str | None = None
    is_read_only: bool = False
    _session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie(self) -> str:
        """Browsers send the cookies of a host to all of its ports."""
        return f"pyrite-{self.port}"

    @property
    def session(self) -> str:
        """The value of the cookie of a browser that has logged in."""
        return self._session

    def is_token(self, text: str) -> bool:
        return self.token is not None and _equal(text, self.token)

    def refusal(
        self, method: str, path: str, headers: Mapping[str, str], cookies: Mapping[str, str]
    ) -> Refusal | None:
        """Why a request is refused; None if it is not. The names of headers are in lower case."""
        name = host_name(headers.get("host", ""))
        if name is None or not self._is_own(name):
            return Refusal(
                421, "this server does not answer for that host name; open the URL that it printed"
            )
        if not self._is_known(headers, cookies):
            return Refusal(
                401, "a token is needed; open the URL with ?token= that the server printed"
            )
        is_change = method not in READING
        if is_change and method != "POST":
            return Refusal(405, f"the method {method} is not used here")
        if (is_change or path.startswith("/api/")) and not _is_same_origin(headers):
            return Refusal(403, "requests of other sites are refused")
        if is_change and headers.get(CHANGE_HEADER) != "1":
            return Refusal(403, "a change needs the header X-Pyrite: 1")
        if is_change and self.is_read_only:
            return Refusal(403, "this page was started with --read-only: it only shows runs")
        return None

    def _is_own(self, name: str) -> bool:
        if name in LOOPBACK_NAMES or name == self.host.lower():
            return True
        # Bound to all addresses, it answers for any of them, and for the name of the machine.
        return is_any(self.host) and (_address(name) is not None or name in _own_names())

    def _is_known(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> bool:
        if self.token is None:
            return True
        kind, _, given = headers.get("authorization", "").partition(" ")
        return _equal(cookies.get(self.cookie, ""), self._session) or (
            kind.lower() == "bearer" and _equal(given.strip(), self.token)
        )


def guard_for(host: str, port: int, token: str | None, *, is_read_only: bool = False) -> Guard:
    """A server that others can reach has a token: the given one, or a new one."""
    if token is not None and (not token or not token.isascii() or not token.isprintable()):
        raise PyriteError("the token of the page must be text of printable ASCII characters")
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(24)
    return Guard(host=host, port=port, token=token, is_read_only=is_read_only)


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("localhost"), is_loopback("127.0.0.5"), is_loopback("::1"), is_loopback("::")
    (True, True, True, False)
    """
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def is_any(host: str) -> bool:
    """Whether it means all addresses of the machine."""
    address = _address(host)
    return host == "" or (address is not None and address.is_unspecified)


def host_name(text: str) -> str | None:
    """The name in a header `Host`, without the port; None if it is none.

    >>> host_name("LocalHost:80"), host_name("[::1]:80"), host_name(""), host_name("a@b:x")
    ('localhost', '::1', None, None)
    """
    try:
        parts = urlsplit(f"//{text}")
        is_plain = not (parts.path or parts.query or parts.fragment or "@" in text)
        if parts.port is None and text.endswith(":"):
            return None
    except ValueError:
        return None
    return parts.hostname if is_plain else None


def _is_same_origin(headers: Mapping[str, str]) -> bool:
    """Browsers say where a request comes from; programs do not, and need no protection."""
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return False
    origin = headers.get("origin")
    if origin is None:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc == headers.get("host")


def _equal(given: str, expected: str) -> bool:
    """Takes the same time whatever is given, so that nobody can guess it bit by bit."""
    one, other = (hashlib.sha256(each.encode()).digest() for each in (given, expected))
    return hmac.compare_digest(one, other)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _own_names() -> set[str]:
    name = socket.gethostname().lower()
    return {name, name.partition(".")[0], socket.getfqdn().lower()}
