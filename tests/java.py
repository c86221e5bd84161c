"""Lets the Java processes of tests start with a third of the work: they do not optimize code that
runs for seconds only, and they map the classes of Spark from a file instead of loading them.

`python -m tests.java` makes that file, in the environment of this Python, unless it is there. Java
does without it if it is missing or does not fit.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
CLASSES = Path(sys.prefix) / f"spark-{pyspark.__version__}.jsa"


def start_fast() -> None:
    """For the Java processes that this process starts, and those that its children start."""
    shared = f"-XX:SharedArchiveFile={CLASSES} -Xlog:disable" if CLASSES.exists() else ""
    options = f"{OPTIONS} {shared}".strip()
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", OPTIONS)
    os.environ.setdefault("SPARK_DAEMON_JAVA_OPTS", options)
    os.environ.setdefault(
        "SPARK_SUBMIT_OPTS", f'{options} -Dspark.executor.extraJavaOptions="{options}"'
    )


def make_classes() -> None:
    """Runs a job in a new process, whose Java writes the file when it ends."""
    made = CLASSES.with_suffix(f".{os.getpid()}")
    options = f"{OPTIONS} -XX:ArchiveClassesAtExit={made} -Xlog:disable"
    job = (
        "import pyrite\n"
        "from pyrite import DAG, between, processors as p\n"
        "with pyrite.instance(spark_master='local[1]') as pyr:\n"
        "    dag = DAG()\n"
        "    read, write = dag.vertex('r', p.read_items([1])), dag.vertex('w', p.write_list('l'))\n"
        "    pyr.new_job(dag.edge(between(read, write).distributed())).execute().result(120)\n"
        "    gateway = pyr.spark().sparkContext._gateway\n"
        "gateway.shutdown(); gateway.proc.stdin.close(); gateway.proc.wait()\n"
    )
    subprocess.run(
        [sys.executable, "-c", job],
        env={**os.environ, "SPARK_SUBMIT_OPTS": options},
        capture_output=True,
        check=False,
    )
    if made.exists():
        made.rename(CLASSES)


if __name__ == "__main__" and not CLASSES.exists():
    make_classes()
