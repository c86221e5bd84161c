"""The program of a member that a local cluster starts: it runs normal jobs on Spark, too."""

from __future__ import annotations

from typing import Any, TextIO

from pyrite.cluster.hosts.process import run_member
from pyrite.spark.driver import SparkDriver


def main(config: dict[str, Any], orders: TextIO, reports: TextIO) -> None:
    """Runs the member until its owner is gone, or sends SIGTERM."""
    master, conf = config["spark_master"], config["spark_conf"]
    run_member(config, orders, reports, lambda: SparkDriver.on(master, conf))
