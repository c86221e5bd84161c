"""The server: its connections, what is asked of it, and what its errors mean.

Commands are sent and replies read on the connections of redis-py's pool, which finds out that an
idle connection was closed before anything is sent on it, and then opens another. Nothing is sent
twice: after an error in between nobody knows whether a write was done.
"""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha1
from typing import Any, Final, Protocol, TypeAlias

from pyrite.collections.redis.faults import explained, is_answer
from pyrite.collections.stored.unavailable import CollectionsUnavailable, NameIsTaken
from pyrite.errors import PyriteError
from pyrite.forks import repair_after_fork

Command: TypeAlias = tuple[Any, ...]

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 10.0
"""Much less than the silence after which a member counts as dead, because a member waits here."""


class Connection(Protocol):
    """What is used of a connection of redis-py."""

    def send_command(self, *command: Any, check_health: bool) -> None: ...

    def send_packed_command(self, data: Any, check_health: bool) -> None: ...

    def pack_commands(self, commands: Sequence[Command]) -> Any: ...

    def read_response(self) -> Any:
        """Raises if the reply is an error."""

    def disconnect(self) -> None: ...


class Script:
    """A script that runs on the server as one step."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sha = sha1(text.encode()).hexdigest()


class Server:
    """A Redis or Valkey server. It is thread-safe, and works in a forked process."""

    def __init__(self, url: str, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self.url = url
        self.address = without_password(url)
        self._answer_seconds = answer_seconds
        self._pool: Any = self._new_pool()
        self._lock = threading.Lock()
        repair_after_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()
        self._pool = None

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.disconnect()

    def call(self, of: str, *command: Any) -> Any:
        """The reply to a command. `of` says what it is about, for messages."""
        with self.connection(of) as connection:
            connection.send_command(*command, check_health=False)
            return connection.read_response()

    def write(self, of: str, commands: Sequence[Command]) -> None:
        """Several commands as one step."""
        if len(commands) == 1:
            self.call(of, *commands[0])
        elif commands:
            with self.connection(of) as connection:
                _transaction(connection, commands)

    def run(self, of: str, script: Script, keys: Sequence[bytes], *arguments: Any) -> Any:
        """What a script returns."""
        from redis.exceptions import NoScriptError

        with self.connection(of) as connection:
            try:
                connection.send_command(
                    *("EVALSHA", script.sha, len(keys), *keys, *arguments), check_health=False
                )
                return connection.read_response()
            except NoScriptError:  # the server has not seen it yet: it has done nothing
                connection.send_command(
                    *("EVAL", script.text, len(keys), *keys, *arguments), check_health=False
                )
                return connection.read_response()

    def change(
        self, of: str, key: bytes, *read: Any, change: Callable[[Any], tuple[list[Command], Any]]
    ) -> Any:
        """Reads, then does what `change` makes of that, as one step: if another changed the key
        meanwhile, all over again. Returns the second of what `change` returns."""
        while True:
            with self.connection(of) as connection:
                connection.send_command("WATCH", key, check_health=False)
                connection.read_response()
                try:
                    connection.send_command(*read, check_health=False)
                    commands, result = change(connection.read_response())
                except BaseException:
                    connection.disconnect()  # it must not watch on
                    raise
                if _transaction(connection, commands) is not None:
                    return result

    @contextmanager
    def connection(self, of: str) -> Iterator[Connection]:
        """A connection for one use. Errors of the server are explained."""
        connection = self.acquired(of)
        try:
            with self.explaining(of, "lost"):
                yield connection
        except BaseException as error:
            if not is_answer(error):
                connection.disconnect()  # there may be an answer under way
            raise
        finally:
            self.release(connection)

    def acquired(self, of: str) -> Connection:
        """A connection, to be released."""
        pool = self._pool
        if pool is None:
            with self._lock:
                pool = self._pool = self._pool or self._new_pool()
        with self.explaining(of, "not reached"):
            connection: Connection = pool.get_connection()
            return connection

    def release(self, connection: Connection) -> None:
        pool = self._pool
        if pool is not None:
            pool.release(connection)
        else:  # closed meanwhile
            connection.disconnect()

    @contextmanager
    def explaining(self, of: str, when: str) -> Iterator[None]:
        from redis.exceptions import RedisError

        try:
            yield
        except (RedisError, OSError) as error:
            is_taken = str(error).startswith("WRONGTYPE")
            raise (NameIsTaken if is_taken else CollectionsUnavailable)(
                f"{of} is in Redis at {self.address}, {explained(error, when)}"
            ) from error

    def _new_pool(self) -> Any:
        from redis import ConnectionPool
        from redis.backoff import NoBackoff
        from redis.connection import parse_url
        from redis.retry import Retry

        parse: Callable[[str], dict[str, Any]] = parse_url
        settings: dict[str, Any] = {
            "socket_connect_timeout": CONNECT_SECONDS,
            "socket_timeout": self._answer_seconds,
            **({} if self.url.startswith("unix:") else _keepalive()),
        }
        try:
            settings.update(parse(self.url))
        except ValueError as error:
            raise PyriteError(f"{self.address} is not the URL of a Redis: {error}") from error
        settings.update(
            protocol=2,
            decode_responses=False,
            retry=Retry(NoBackoff(), 0),
            retry_on_timeout=False,
            retry_on_error=[],
        )
        return ConnectionPool(**settings)

    def __repr__(self) -> str:
        return f"<Redis at {self.address}>"


def without_password(url: str) -> str:
    """The address for messages. Raises if the URL cannot be one."""
    scheme, _, rest = url.partition("://")
    shown = f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"
    database = shown.removeprefix(f"{scheme}://").partition("/")[2]
    if scheme != "unix" and database and not database.isdigit():
        raise PyriteError(f"the database in '{shown}' must be a number, as in redis://host:6379/0")
    return shown


def _keepalive() -> dict[str, Any]:
    """The system finds out that the other side of an idle connection is gone."""
    if sys.platform != "linux":
        return {"socket_keepalive": True}
    return {
        "socket_keepalive": True,
        "socket_keepalive_options": {
            socket.TCP_KEEPIDLE: 30,
            socket.TCP_KEEPINTVL: 10,
            socket.TCP_KEEPCNT: 3,
        },
    }


def _transaction(connection: Connection, commands: Sequence[Command]) -> Any:
    """Does all commands or none. None if a key that is watched was changed."""
    from redis.exceptions import ResponseError

    connection.send_packed_command(
        connection.pack_commands([("MULTI",), *commands, ("EXEC",)]), check_health=False
    )
    refused: ResponseError | None = None
    for _ in range(len(commands) + 1):
        try:
            connection.read_response()
        except ResponseError as error:
            refused = refused or error
    try:
        replies = connection.read_response()
    except ResponseError as error:
        raise refused or error from None
    for reply in replies or ():
        if isinstance(reply, ResponseError):
            raise reply
    return replies
