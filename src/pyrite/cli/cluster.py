"""The commands that start members: `cluster` on this machine, `member` anywhere."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from pyrite.cli.errors import reporting_errors
from pyrite.collections.opening import MEMORY
from pyrite.errors import PyriteError
from pyrite.instances import instance
from pyrite.spark.driver import SparkDriver

if TYPE_CHECKING:
    from pyrite.cluster.hosts.hosted import HostedCluster

SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file",
        help="A file with the secret that members and clients share.",
        dir_okay=False,
    ),
]
Threads = Annotated[
    int | None, typer.Option(help="Size of the cooperative pool of a member.", min=1)
]

Collections = Annotated[
    str,
    typer.Option(help="Where named maps and lists are: memory, or redis://HOST:PORT/DB."),
]
CollectionsFile = Annotated[
    Path | None,
    typer.Option(
        help="A file with the URL of the Redis, if that has a password: other users of a machine "
        "can read its command lines.",
        dir_okay=False,
    ),
]


def cluster(
    members: Annotated[
        int, typer.Option(help="How many member processes; default: one for each CPU.", min=1)
    ] = os.cpu_count() or 1,
    spark_master: Annotated[
        str | None,
        typer.Option(help="Have Spark host the members: its master, or local[N] for this machine."),
    ] = None,
    secret_file: SecretFile = None,
    threads: Threads = None,
    collections: Collections = "memory",
    collections_file: CollectionsFile = None,
) -> None:
    """Run a cluster of member processes, on this machine or inside Spark, until Ctrl-C.

    Clients need the secret: it is read from the file, which is made if it does not exist.
    """
    from pyrite.cluster import LocalCluster
    from pyrite.cluster.hosts.serving import secret_in
    from pyrite.cluster.hosts.signals import EndingSignals

    console = Console()
    with reporting_errors():
        path = secret_file or Path("pyrite.secret")
        secret = secret_in(path, make=True)
        place = collections_at(collections, collections_file)
        with (
            EndingSignals() as signals,
            (
                LocalCluster(members, secret=secret, cooperative_threads=threads, collections=place)
                if spark_master is None
                else _hosted(spark_master, members, secret, threads, place)
            ) as running,
        ):
            url = "pyrite://" + ",".join(running.addresses)
            console.print(f"{members} members run at {url}", soft_wrap=True)
            console.print(f"their secret is in {path}", soft_wrap=True)
            signals.wait()


@contextmanager
def _hosted(
    master: str, members: int, secret: str, threads: int | None, collections: str
) -> Iterator[HostedCluster]:
    """Members inside Spark. When they end by themselves, so does this process."""
    from pyrite.cluster.hosts.hosted import HostedCluster

    with (
        instance(spark_master=master) as pyr,
        HostedCluster(
            pyr.spark(),
            members,
            secret=secret,
            cooperative_threads=threads,
            collections=collections,
            on_end=lambda: os.kill(os.getpid(), signal.SIGTERM),
        ) as running,
    ):
        yield running
        running.check()


def member(
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where this member listens.")],
    members: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT,...",
            help="All members, this one included; the same list for each of them.",
        ),
    ] = None,
    zookeeper: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT,...",
            help="The servers of ZooKeeper, in place of a list of members: they may come and go.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --zookeeper, the cluster that this member joins."),
    ] = None,
    secret_file: SecretFile = None,
    threads: Threads = None,
    spark_master: Annotated[
        str | None,
        typer.Option(help="The Spark master for normal jobs that clients submit to this member."),
    ] = None,
    collections: Collections = "memory",
    collections_file: CollectionsFile = None,
) -> None:
    """Run one member of a cluster, until SIGTERM or Ctrl-C.

    The other members are those of a fixed list, or those that are registered in ZooKeeper.
    """
    from pyrite.cluster.hosts.elastic import serve_elastic_member
    from pyrite.cluster.hosts.serving import secret_in, serve_member

    if (members is None) == (zookeeper is None):
        raise typer.BadParameter(
            "give either --members, if all members are known, or --zookeeper with --cluster, if "
            "they come and go"
        )
    if (zookeeper is None) != (cluster is None):
        raise typer.BadParameter("--zookeeper and --cluster belong together: give both or none")
    console = Console()

    def tell(complete: bool) -> None:
        console.print("all members are connected" if complete else "a member was lost")

    with reporting_errors():
        secret = None if secret_file is None else secret_in(secret_file)
        place = collections_at(collections, collections_file)

        def driver() -> SparkDriver:
            return SparkDriver.on(spark_master)

        if zookeeper is not None and cluster is not None:
            serve_elastic_member(
                listen,
                zookeeper,
                cluster,
                secret=secret,
                cooperative_threads=threads,
                driver=driver,
                collections=place,
                say=lambda text: console.print(text, soft_wrap=True, highlight=False),
            )
        elif members is not None:
            serve_member(
                listen,
                [address for address in members.split(",") if address],
                secret=secret,
                cooperative_threads=threads,
                driver=driver,
                collections=place,
                on_complete=tell,
            )


def collections_at(collections: str, file: Path | None) -> str:
    """Where named maps and lists are."""
    if file is None:
        if "@" in collections or "password=" in collections:
            raise PyriteError(
                "the URL of the Redis has a password, and other users of this machine can read "
                "command lines; write the URL to a file and use --collections-file"
            )
        return collections
    if collections != MEMORY:
        raise PyriteError("give --collections or --collections-file, not both")
    try:
        return file.read_text().strip()
    except OSError as error:
        raise PyriteError(f"the URL of the collections cannot be read: {error}") from error
