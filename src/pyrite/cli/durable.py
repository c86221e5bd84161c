"""The commands of durable jobs: `coordinator`."""

from __future__ import annotations

import logging
from functools import partial
from threading import Thread
from typing import Annotated, Final

import typer

from pyrite.cli.errors import reporting_errors

PATIENCE: Final = 2.0
"""Seconds for a program to end by itself, after a signal."""

Durable = Annotated[
    str,
    typer.Option(
        "--durable",
        metavar="FOLDER_OR_URL",
        help="A folder, for one machine, or zk://HOST:PORT,.../CLUSTER?nats=nats://HOST:PORT.",
    ),
]


def coordinator(
    durable: Durable,
    ack_seconds: Annotated[
        float,
        typer.Option(
            help="A peer that does not take an offer for so long gets no more.",
            min=0.1,
        ),
    ] = 10.0,
) -> None:
    """Run a coordinator of durable jobs, until SIGTERM or Ctrl-C.

    Several may run: one of them leads, the others are stand-bys and take over when it ends.
    """
    from pyrite.cluster.hosts.signals import EndingSignals
    from pyrite.durable.coordinator.program import Coordinator
    from pyrite.durable.hosts.places import closes_queues
    from pyrite.durable.store.opening import deployment_at, open_store

    with reporting_errors():
        deployment_at(durable)
        _log_to_stderr("pyrite.durable.coordinator", name="coordinator")
        with EndingSignals() as signals:
            running = Coordinator(
                partial(open_store, durable), closes_queues(durable), ack_seconds=ack_seconds
            )
            thread = Thread(target=running.run, name="coordinator", daemon=True)
            thread.start()
            signals.wait()
            running.stop()
            thread.join(PATIENCE)


def _log_to_stderr(logger: str, *, name: str) -> None:
    """One line for each important thing, also without --verbose."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"%(asctime)s {name}: %(message)s"))
    chosen = logging.getLogger(logger)
    chosen.addHandler(handler)
    chosen.propagate = False
    chosen.setLevel(min(logging.INFO, logging.getLogger().level))
