"""Connections: a new one for each reader and writer, closed when it is done.

An engine of SQLAlchemy is made in each process that uses it, and never travels. It holds no
connections, but knows the server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from pyrite.errors import ProcessorError
from pyrite.processors.sql.address import Address

BUSY_SECONDS = 60
"""For how long a connection to SQLite waits for another one that writes."""
ATTACHED = "pyrite_staging"
MOST_KEPT = 16
"""How many engines a process keeps of each kind."""


@contextmanager
def connected(address: Address) -> Iterator[Connection]:
    """A connection to read. The block is one transaction."""
    with engine_at(address.resolved()).connect() as connection:
        yield connection


def engine_at(
    url: URL, *, must_exist: bool = True, begin: str = "BEGIN", attach: str | None = None
) -> Engine:
    """`begin` is how SQLite begins transactions, and `attach` a file that it attaches as
    `ATTACHED`. With `must_exist`, its own file must be there: SQLite would make an empty one."""
    if must_exist and is_missing_file(url):
        raise ProcessorError(f"there is no file '{url.database}', which should be a database")
    if url.get_backend_name() != "sqlite":
        return _server(url)
    return _file(url, begin) if attach is None else _new_file(url, begin, attach)


@lru_cache(maxsize=MOST_KEPT)
def _server(url: URL) -> Engine:
    return create_engine(url, poolclass=NullPool, hide_parameters=True)


@lru_cache(maxsize=MOST_KEPT)
def _file(url: URL, begin: str) -> Engine:
    return _new_file(url, begin, None)


def _new_file(url: URL, begin: str, attach: str | None) -> Engine:
    engine = create_engine(
        url,
        poolclass=NullPool,
        hide_parameters=True,
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        # By default, the driver begins transactions only before some statements.
        connection.isolation_level = None
        if attach is not None:
            connection.execute(f"ATTACH ? AS {ATTACHED}", (attach,))

    @event.listens_for(engine, "begin")
    def begin_transaction(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def is_missing_file(url: URL) -> bool:
    return url.get_backend_name() == "sqlite" and not os.path.exists(url.database or "")
