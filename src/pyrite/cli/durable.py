"""The command `coordinator`, and the options that all commands of durable jobs have."""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Annotated, Final

import typer

from pyrite.cli.errors import reporting_errors
from pyrite.errors import PyriteError
from pyrite.telemetry.logs import formatter

PATIENCE: Final = 2.0
"""Seconds for a program to end by itself, after a signal."""

Durable = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER_OR_URL",
        help="A folder, for one machine, or zk://HOST:PORT,.../CLUSTER?nats=nats://HOST:PORT.",
    ),
]
DurableFile = Annotated[
    Path | None,
    typer.Option(
        help="A file with the URL, if that has a secret: other users of a machine can read its "
        "command lines.",
        dir_okay=False,
    ),
]


def coordinator(
    durable: Durable = None,
    durable_file: DurableFile = None,
    ack_seconds: Annotated[
        float,
        typer.Option(help="A peer that does not take an offer for so long gets no more.", min=0.1),
    ] = 10.0,
) -> None:
    """Run a coordinator of durable jobs, until SIGTERM or Ctrl-C.

    Several may run: one of them leads, the others are stand-bys and take over when it ends.
    """
    from pyrite.cluster.hosts.signals import EndingSignals
    from pyrite.durable.coordinator.program import Coordinator
    from pyrite.durable.hosts.places import closes_queues, lists_queues
    from pyrite.durable.store.opening import open_store

    with reporting_errors():
        place = place_of(durable, durable_file)
        log_to_stderr("pyrite.durable.coordinator", name="coordinator")
        with EndingSignals() as signals:
            running = Coordinator(
                partial(open_store, place),
                closes_queues(place),
                lists_queues(place),
                ack_seconds=ack_seconds,
            )
            thread = Thread(target=running.run, name="coordinator", daemon=True)
            thread.start()
            signals.wait()
            running.stop()
            thread.join(PATIENCE)


def place_of(durable: str | None, file: Path | None) -> str:
    """Where durable jobs are kept: the whole path of a folder, or a URL. Raises if it is none."""
    from pyrite.durable.store.opening import deployment_at

    if (durable is None) == (file is None):
        raise PyriteError("give --durable or --durable-file, one of them")
    if durable is not None and "secret=" in durable:
        raise PyriteError(
            "the URL has a secret, and other users of this machine can read command lines; write "
            "the URL to a file and use --durable-file"
        )
    try:
        place = durable if file is None else file.read_text().strip()
    except OSError as error:
        raise PyriteError(f"the URL of the deployment cannot be read: {error}") from error
    if not place:
        raise PyriteError("the place of durable jobs is empty; give a folder, or zk://...")
    if deployment_at(place) is not None:
        return place
    return os.path.abspath(os.path.expanduser(place))


def log_to_stderr(logger: str, *, name: str) -> None:
    """One line for each important thing, also without --verbose."""
    handler = logging.StreamHandler()
    handler.setFormatter(formatter(f"%(asctime)s {name}: %(message)s"))
    chosen = logging.getLogger(logger)
    chosen.addHandler(handler)
    chosen.propagate = False
    chosen.setLevel(min(logging.INFO, logging.getLogger().level))
