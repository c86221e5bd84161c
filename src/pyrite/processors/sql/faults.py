"""Errors of databases as sentences: what was wrong, in which vertex and table, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.exc import (
    DataError,
    IntegrityError,
    NoSuchModuleError,
    NoSuchTableError,
    SQLAlchemyError,
    StatementError,
)

from pyrite.errors import ProcessorError
from pyrite.functions import shorten_text
from pyrite.processors.sql.address import Address

_LONGEST = 600
_POINTER = re.compile(r"LINE \d+: |CONTEXT: |\s*\^\s*$")
"""Lines of PostgreSQL that point into a statement which the user has not written."""

_LINK = re.compile(r"\(Background on this error at: \S+\)")


@contextmanager
def explained(address: Address, vertex: str, doing: str) -> Iterator[None]:
    """Turns what SQLAlchemy and its drivers raise inside the block into a ProcessorError. `doing`
    goes after "cannot"."""
    try:
        yield
    except (SQLAlchemyError, ImportError, ValueError, TypeError) as error:
        raise ProcessorError(
            f"vertex '{vertex}' cannot {doing} {address}: {reason(error, address)}"
        ) from cause_of(error)


def reason(error: BaseException, address: Address) -> str:
    """What the database says, in one line, without statements and passwords; and what to do."""
    if isinstance(error, NoSuchModuleError | ImportError):
        return (
            f"{address.scrubbed(str(error))}; install the driver of this kind of database, such as "
            "pip install 'psycopg[binary]' for PostgreSQL"
        )
    if isinstance(error, NoSuchTableError):
        return f"there is no table '{error}'"
    said: BaseException = error
    if isinstance(error, StatementError) and error.orig is not None:
        said = error.orig
    lines = [line for line in _LINK.sub("", str(said)).splitlines() if not _POINTER.match(line)]
    text = address.scrubbed(" ".join(" ".join(lines).split()))
    text = shorten_text(text or type(said).__name__, _LONGEST)
    return text + next((hint for applies, hint in _HINTS if applies(error, text)), "")


def cause_of(error: BaseException) -> BaseException | None:
    """The error of the driver: that of SQLAlchemy repeats the statement."""
    return error.orig if isinstance(error, StatementError) else error


def is_of_row(error: BaseException) -> bool:
    """Whether one of the rows may be to blame, and not the connection. All drivers have an error of
    this name."""
    said = cause_of(error)
    return not any(each.__name__ == "OperationalError" for each in type(said).__mro__)


def _has(*words: str) -> Callable[[BaseException, str], bool]:
    return lambda error, text: any(word in text.lower() for word in words)


_HINTS: list[tuple[Callable[[BaseException, str], bool], str]] = [
    (
        _has("no such table", "no such column", "does not exist"),
        "; look at the names of the table and its columns",
    ),
    (
        _has("database is locked"),
        "; another connection has been writing to this file for a minute: let it commit",
    ),
    (
        _has("lock timeout"),
        "; another transaction has locked it for a minute: let it commit. If it is that of another "
        "sink of this job, use the same user and the same URL for both",
    ),
    (
        _has("permission denied", "readonly database"),
        "; give this user the right, or use another user",
    ),
    (
        _has("connection refused", "could not translate host", "failed to resolve"),
        "; look at the host and port of the URL, and whether the server runs",
    ),
    (_has("authentication failed", "no password supplied"), "; look at the user and password"),
    (
        lambda error, text: (
            isinstance(error, IntegrityError)
            and any(word in text.lower() for word in ("unique", "duplicate"))
        ),
        "; to update the rows that exist already, name the columns of the key: key=...",
    ),
    (
        lambda error, text: isinstance(error, IntegrityError | DataError),
        "; change the values, or the type or the rules of the column",
    ),
]
