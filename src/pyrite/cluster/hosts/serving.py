"""A member as a program of its own: it listens at a fixed address, and knows the others from a
list."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import zmq

from pyrite.cluster.hosts.signals import EndingSignals
from pyrite.cluster.member import Member
from pyrite.cluster.normal.driving import no_driver
from pyrite.errors import PyriteError
from pyrite.exchange.driving import Driver
from pyrite.wire.keys import keys_from, new_secret


def serve_member(
    address: str,
    members: Sequence[str],
    *,
    secret: str | None,
    cooperative_threads: int | None = None,
    driver: Callable[[], Driver] = no_driver,
    collections: str = "memory",
    on_complete: Callable[[bool], None] = lambda complete: None,
) -> None:
    """Runs a member until SIGTERM or SIGINT. Jobs that run then end abruptly."""
    host_and_port(address)
    if address not in members:
        raise PyriteError(
            f"a member must be in the list of members by the address that it listens at: {address} "
            f"is not in {', '.join(members)}"
        )
    for other in members:
        check_secret(other, secret)
        if members.count(other) > 1:
            raise PyriteError(
                f"{other} is {members.count(other)} times in the list of members; give each member "
                "once"
            )
    with EndingSignals() as signals:
        member = Member(
            keys_from(secret) if secret is not None else None,
            cooperative_threads=cooperative_threads,
            driver=driver,
            collections=collections,
        )
        listen(member, address)
        member.join(address, tuple(members), on_complete)
        try:
            signals.wait()
        finally:
            member.close()


def check_secret(address: str, secret: str | None) -> None:
    """Raises if a member on a network has no secret."""
    host, _ = host_and_port(address)
    if secret is None and not _is_loopback(host):
        raise PyriteError(
            f"member {address} is on a network, so it needs a secret that all members share: "
            "without one a member listens on loopback addresses only; use --secret-file"
        )


def listen(member: Member, address: str) -> None:
    host, port = host_and_port(address)
    try:
        member.bind(_ip_of(host), port)
    except zmq.ZMQError as error:
        member.wire.close()
        raise PyriteError(
            f"member {address} cannot listen there: {error.strerror}; another process may use the "
            "address, or it is not one of this machine"
        ) from None


def secret_in(path: Path, *, make: bool = False) -> str:
    """The secret that a file holds. With `make`, a file that does not exist is written, for nobody
    else to read."""
    try:
        if make and not path.exists():
            path.touch(mode=0o600)
            path.write_text(new_secret() + "\n")
        return path.read_text().strip()
    except OSError as error:
        raise PyriteError(
            f"the secret of the cluster cannot be read from '{path}', nor written there: "
            f"{error.strerror}"
            if make
            else f"the secret of the cluster cannot be read from '{path}': {error.strerror}"
        ) from error


def host_and_port(address: str, of: str = "a member") -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise PyriteError(f"the address of {of} is HOST:PORT; got '{address}'")
    return host, int(port)


def _ip_of(host: str) -> str:
    try:
        return socket.gethostbyname(host)
    except OSError as error:
        raise PyriteError(f"the host '{host}' is not known: {error}") from error


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(_ip_of(host)).is_loopback
