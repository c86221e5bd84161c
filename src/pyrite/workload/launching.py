"""Persistent workers that a launcher starts. A launcher is any function that behaves like a
parallel `map`; it calls `host_worker` once per worker.

`host_worker` starts a worker process, on whatever machine the launcher runs it. The worker connects
to the master and runs jobs. If the worker dies, `host_worker` starts another one. The folder of the
store must be shared by all these machines. A worker must prove that it knows the secret of the run.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import select
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pyrite.workload import processes
from pyrite.workload.copies import above_streams, own_pipe
from pyrite.workload.store import Store
from pyrite.workload.workers import exactly, receive

CONNECT_SECONDS = 10.0
SECRET_BYTES = 32
ANSWER_SECONDS = 1.0  # the master does nothing else while it waits for the answer

Launcher = Callable[[Callable[["Post"], None], Iterable["Post"]], Iterable[Any]]


@dataclass(frozen=True, slots=True)
class Post:
    """What a launched worker needs to connect to its master."""

    number: int
    store: str
    host: str
    port: int
    secret: bytes
    path: tuple[str, ...]


def listen(host: str = "127.0.0.1") -> tuple[socket.socket, bytes]:
    """Opens a socket for the workers to connect to, and makes the secret that they must know."""
    server = socket.create_server((host, 0))
    return socket.socket(fileno=above_streams(server.detach())), secrets.token_bytes(SECRET_BYTES)


def admit(connection: socket.socket, secret: bytes) -> bool:
    """Whether the other side of the connection knows the secret. It must answer a random challenge,
    so that the secret itself is never sent."""
    question = secrets.token_bytes(32)
    connection.settimeout(ANSWER_SECONDS)
    try:
        connection.sendall(question)
        answer = exactly(connection, 32)
    except OSError:
        return False
    return hmac.compare_digest(answer, hmac.digest(secret, question, "sha256"))


def launch(launcher: Launcher, posts: list[Post], on_end: Callable[[str], None]) -> None:
    """Calls the launcher in a thread; it returns when its workers have ended. Then calls `on_end`
    with the error of the launcher, or with an empty string."""

    def run() -> None:
        try:
            for _ in launcher(host_worker, posts):
                pass
        except BaseException as error:
            on_end(f"{type(error).__name__}: {error}")
        else:
            on_end("")

    threading.Thread(target=run, name="workload launcher", daemon=True).start()


def host_worker(post: Post) -> None:
    """Keeps one worker process running until the master has ended, or accepts no more workers
    because all jobs have ended."""
    for folder in post.path:
        if folder not in sys.path:
            sys.path.append(folder)
    while (connection := _connect(post)) is not None:
        with connection:
            hello = receive(connection)
            if not hello:
                return
            _host_one(post, connection, hello.decode())


def _connect(post: Post) -> socket.socket | None:
    try:
        connection = socket.create_connection((post.host, post.port), timeout=CONNECT_SECONDS)
    except OSError:
        return None
    try:
        question = exactly(connection, 32)
        connection.sendall(hmac.digest(post.secret, question, "sha256"))
    except OSError:
        connection.close()
        return None
    connection.settimeout(None)
    return connection


def _host_one(post: Post, connection: socket.socket, hello: str) -> None:
    """Runs one worker on this connection. Kills it when the master closes the connection. If this
    process dies, the pipe `lifeline` is closed, and the worker ends itself."""
    told = json.loads(hello)
    segment = told["segment"]
    store = Store(post.store)
    lifeline, ours = own_pipe()
    try:
        config = {
            "store": post.store,
            "plan": told["plan"],
            "segment": segment,
            "inbox": connection.fileno(),
            "reports": connection.fileno(),
            "lifeline": lifeline,
        }
        process = processes.start(
            "worker", config, log=store.log(segment), files=(connection.fileno(), lifeline)
        )
        alive = os.pidfd_open(process.pid)
        watch = select.poll()
        watch.register(alive, select.POLLIN)
        watch.register(connection, select.POLLRDHUP)
        try:
            watch.poll()
        finally:
            processes.kill_session(process.pid)
            os.close(alive)
            process.wait()
    finally:
        os.close(lifeline)
        os.close(ours)
