"""Checks the address of a Spark master before Spark is started on it: Spark itself takes minutes to
give up, and then reports something else."""

from __future__ import annotations

import re
import socket
from typing import Any

from pyrite.errors import PyriteError

CONNECT_SECONDS = 5.0

_MASTERS = re.compile(
    r"local"
    r"|local\[\s*(\*|[1-9]\d*)\s*(,\s*\d+\s*)?\]"
    r"|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    r"|spark://(?:[^/\s:,]+|\[[0-9a-fA-F:]+\]):\d+(?:,(?:[^/\s:,]+|\[[0-9a-fA-F:]+\]):\d+)*"
    r"|yarn"
    r"|k8s://\S+"
    r"|sc://\S+"
)


def check_master(master: str) -> None:
    """Raises PyriteError if Spark knows no master of that form.

    >>> check_master("local[2, 4]"); check_master("spark://one:7077,two:7077")
    >>> check_master("locl[2]")
    Traceback (most recent call last):
    pyrite.errors.PyriteError: 'locl[2]' is not the address of a Spark master; ...
    """
    if not isinstance(master, str) or _MASTERS.fullmatch(master) is None:
        raise PyriteError(
            f"{master!r} is not the address of a Spark master; use local[*], local[4], "
            "spark://host:7077, yarn, k8s://https://host:443, or sc://host:15002 for Spark Connect"
        )


def check_reachable(master: str) -> None:
    """Raises PyriteError if nobody answers at the address of a standalone master or of a Spark
    Connect server."""
    if master.startswith("spark://"):
        _check_standalone(master)
    elif master.startswith("sc://"):
        _check_connect(master)


def _check_standalone(master: str) -> None:
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            where = (host.strip("[]"), int(port))
            socket.create_connection(where, CONNECT_SECONDS).close()
            return
        except (OSError, OverflowError) as error:
            reasons.append(f"{address}: {error}")
    raise PyriteError(
        f"there is no Spark master at {master} ({'; '.join(reasons)}); check the address, and "
        "whether the master is running"
    )


def _check_connect(master: str) -> None:
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        channel = DefaultChannelBuilder(master).toChannel()
    except Exception as error:
        raise PyriteError(f"'{master}' is not the address of a Connect server: {error}") from error
    try:
        if not answers(channel):
            raise PyriteError(
                f"no Spark Connect server answers at {master} (tried for {CONNECT_SECONDS:g} s); "
                "check the address, and whether the server is running"
            )
    finally:
        channel.close()


def answers(channel: Any) -> bool:
    """Whether the server at the other end of a gRPC channel answers, within seconds."""
    import grpc

    try:
        grpc.channel_ready_future(channel).result(timeout=CONNECT_SECONDS)
    except grpc.FutureTimeoutError:
        return False
    return True
