"""The programs of coordinators and peers: such a peer runs jobs on Spark, too."""

from __future__ import annotations

from typing import TextIO

from pyrite.durable.hosts import peering, program
from pyrite.exchange.driving import SparkSettings
from pyrite.spark.driver import SparkDriver


def main(arguments: list[str], orders: TextIO) -> None:
    """The process of a coordinator or a peer, which ends with its owner."""
    program.main(arguments, orders, _new_driver)


def live_as_peer(place: str, collections: str | None = None) -> None:
    """Returns when the peer was told to shut down. `place` is a folder, or the URL of a deployment,
    whose named maps and lists are in a Redis at the URL `collections`."""
    peering.live_as_peer(place, collections, new_driver=_new_driver)


def _new_driver(settings: SparkSettings) -> SparkDriver:
    return SparkDriver.on(settings.master, settings.conf)
