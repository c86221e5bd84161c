"""A member as a program of its own, in a cluster whose members come and go: it finds the others in
ZooKeeper."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Sequence

from pyrite.cluster.elastic.peers import ElasticPeers
from pyrite.cluster.elastic.zookeeper import Registration
from pyrite.cluster.hosts.serving import (
    check_secret,
    host_and_port,
    listen,
)
from pyrite.cluster.hosts.signals import EndingSignals
from pyrite.cluster.member import Member
from pyrite.cluster.normal.driving import no_driver
from pyrite.errors import PyriteError
from pyrite.exchange.driving import Driver
from pyrite.wire.keys import keys_from
from pyrite.wire.zookeeper import check_installed

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def serve_elastic_member(
    address: str,
    servers: str,
    cluster: str,
    *,
    secret: str | None,
    cooperative_threads: int | None = None,
    driver: Callable[[], Driver] = no_driver,
    collections: str = "memory",
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Runs a member until SIGTERM or SIGINT, or until another process takes its address. `say` is
    called with what a person should know."""
    if not _NAME.fullmatch(cluster):
        raise PyriteError(
            f"the name of a cluster has letters, digits, '.', '_' and '-'; got '{cluster}'"
        )
    for server in servers.split(","):
        host_and_port(server, "a ZooKeeper server")
    check_secret(address, secret)
    check_installed("membership by ZooKeeper")
    displaced = False
    with EndingSignals() as signals:
        member = Member(
            keys_from(secret) if secret is not None else None,
            cooperative_threads=cooperative_threads,
            driver=driver,
            collections=collections,
            cluster=cluster,
        )

        def on_displaced() -> None:
            nonlocal displaced
            displaced = True
            os.kill(os.getpid(), signal.SIGTERM)

        was_connected = False

        def on_state(is_connected: bool, why: str) -> None:
            nonlocal was_connected
            at = f"ZooKeeper at {servers}"
            if is_connected:
                say(f"connected to {at}")
            elif was_connected:
                say(f"waiting for {at} ({why}); jobs go on with the members that are here")
            else:
                say(f"waiting for {at} ({why}), as long as it takes; press Ctrl-C to end")
            was_connected |= is_connected

        listen(member, address)
        registration = Registration(
            servers,
            cluster,
            address,
            member.wire.me.incarnation,
            on_state=on_state,
            on_displaced=on_displaced,
        )
        member.join(
            address,
            (),
            lambda complete: None,
            make_peers=lambda me: ElasticPeers(
                me,
                on_change=lambda addresses: say(_members(cluster, addresses)),
                announce=registration.announce,
            ),
        )
        peers = member.peers
        assert isinstance(peers, ElasticPeers)
        registration.start(lambda roster: member.post(lambda: peers.listed(roster)))
        try:
            signals.wait()
        finally:
            registration.close()
            member.close()
    if displaced:
        raise PyriteError(
            f"another process has joined cluster '{cluster}' as member {address}, so this one "
            "has ended; give each member an address of its own that the others can reach"
        )


def _members(cluster: str, addresses: Sequence[str]) -> str:
    count = f"{len(addresses)} member{'s' * (len(addresses) != 1)}"
    return f"cluster '{cluster}' has {count}: {', '.join(addresses)}"
