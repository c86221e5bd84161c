"""Where a database is: a URL whose password nobody sees."""

from __future__ import annotations

import importlib.util
import os
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyrite.errors import InvalidDAG, ProcessorError
from pyrite.functions import shorten

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

HIDDEN = "***"
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_SECRET = re.compile(r"passw|secret|token|key", re.IGNORECASE)
_SHORTEST_HIDDEN = 3
_PORTS = {"postgresql": 5432}


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """A URL of SQLAlchemy. `${NAME}` in it stands for a variable of the environment, which the
    process that connects reads: then neither the job nor its pickle has the password.

    >>> Address("postgresql://app:secret@db/shop")
    postgresql://app:***@db/shop
    """

    url: str

    def __repr__(self) -> str:
        from sqlalchemy.engine import make_url

        if _VARIABLE.fullmatch(self.url):
            return self.url
        return _shown(make_url(self.url))

    def without_password(self) -> Address:
        return Address(repr(self))

    def resolved(self) -> URL:
        """With the values of all variables."""
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError

        if variable := _VARIABLE.fullmatch(self.url):
            try:
                url = make_url(_value_of(variable))
            except (ArgumentError, ValueError):
                raise ProcessorError(
                    f"the variable {variable[1]} of the environment is not the URL of a database, "
                    "such as postgresql://user@host/name"
                ) from None
        else:
            url = make_url(self.url)
            url = url.set(
                username=_filled(url.username),
                password=_filled(url.password),
                host=_filled(url.host),
                database=_filled(url.database),
                query={name: _filled(value) for name, value in url.query.items()},
            )
        if url.drivername in ("postgres", "postgresql"):
            url = url.set(drivername=_driver_of_postgresql())
        if url.get_backend_name() == "sqlite" and not _is_memory(url):
            url = url.set(database=os.path.realpath(url.database or ""))
        return url

    def place(self) -> str:
        """A name of the database that is the same for all URLs with which a user can write it; also
        if variables are not set here."""
        from sqlalchemy.engine import URL, make_url

        try:
            url = self.resolved()
        except ProcessorError:
            if _VARIABLE.fullmatch(self.url):
                return self.url
            url = make_url(self.url)
        backend = url.get_backend_name()
        if backend == "sqlite":
            return f"sqlite:///{url.database}"
        return _shown(
            URL.create(
                backend,
                username=url.username,
                host=(url.host or "").lower() or None,
                port=url.port or _PORTS.get(backend),
                database=url.database,
                query=dict(sorted(url.query.items())),
            )
        )

    def scrubbed(self, text: str) -> str:
        """The text of an error, without the password."""
        try:
            url = self.resolved()
        except ProcessorError:
            return text
        for secret in _secrets(url):
            text = text.replace(secret, HIDDEN)
        return text


def checked_address(processor: str, url: Any) -> Address:
    """Raises InvalidDAG if SQLAlchemy is missing, or if it is not a URL."""
    if importlib.util.find_spec("sqlalchemy") is None:
        raise InvalidDAG(
            f"{processor}() needs SQLAlchemy, which is not installed; run: "
            "pip install 'pyrite[sql]'"
        )
    from sqlalchemy.engine import URL, make_url
    from sqlalchemy.exc import ArgumentError

    if isinstance(url, URL):
        url = url.render_as_string(hide_password=False)
    if not isinstance(url, str) or not url:
        raise InvalidDAG(
            f"{processor}() needs the URL of a database, such as sqlite:///shop.db; got "
            f"{shorten(url)}"
        )
    if _VARIABLE.fullmatch(url):
        return Address(url)
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise InvalidDAG(
            f"{processor}() needs the URL of a database, such as sqlite:///shop.db or "
            "postgresql://user@host/name; what it got cannot be read as one (it is not shown, "
            "because it may have a password); put special characters of a password as %40 and so "
            "on"
        ) from None
    if parsed.get_backend_name() == "sqlite":
        if _is_memory(parsed):
            raise InvalidDAG(
                f"{processor}() cannot use '{url}': such a database is in the memory of one "
                "connection, and nobody else sees it; use a file: sqlite:///shop.db"
            )
        # Spark workers have other working directories.
        if not _VARIABLE.search(url):
            parsed = parsed.set(database=os.path.abspath(parsed.database or ""))
    return Address(parsed.render_as_string(hide_password=False))


def _is_memory(url: URL) -> bool:
    name = url.database or ""
    return name in ("", ":memory:") or name.startswith("file:")


def _filled(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_filled, value))
    return _VARIABLE.sub(_value_of, value) if value else value


def _value_of(variable: re.Match[str]) -> str:
    value = os.environ.get(variable[1])
    if value is None:
        raise ProcessorError(
            f"the URL of the database needs the variable {variable[1]}, which is not set in the "
            f"environment of process {os.getpid()} on {socket.gethostname()}; set it where that "
            "process is started"
        )
    return value


def _driver_of_postgresql() -> str:
    """psycopg where it is installed: what a plain URL means depends on SQLAlchemy's version."""
    has_psycopg = importlib.util.find_spec("psycopg") is not None
    return "postgresql+psycopg" if has_psycopg else "postgresql+psycopg2"


def _shown(url: URL) -> str:
    url = url.set(
        query={name: HIDDEN if _SECRET.search(name) else url.query[name] for name in url.query}
    )
    password = url.password
    hide = password is None or not _VARIABLE.fullmatch(str(password))
    shown = url.render_as_string(hide_password=hide)
    return re.sub(r"%24%7B(\w+)%7D", r"${\1}", shown)


def _secrets(url: URL) -> list[str]:
    found = [url.password, *(url.query[name] for name in url.query if _SECRET.search(name))]
    return [
        secret for secret in found if isinstance(secret, str) and len(secret) >= _SHORTEST_HIDDEN
    ]
