"""What tests of bad records share: jobs, and what becomes of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyrite
from pyrite import DAG, DeadLetter, Instance, Pipeline, between
from pyrite import processors as p


def line_of(*steps: tuple[str, Any, Any]) -> DAG:
    """A DAG of (name, supplier, on_error) in a line."""
    dag = DAG()
    vertices = [dag.vertex(name, supplier, on_error=policy) for name, supplier, policy in steps]
    for one, two in pairwise(vertices):
        dag.edge(between(one, two))
    return dag


def bad_list() -> pyrite.OnError:
    return pyrite.dead_letter(p.write_list("bad"))


def run(pyr: Instance, dag: DAG | Pipeline) -> dict[str, Any]:
    """Runs a light job to its end, and returns its metrics."""
    execution = pyr.new_light_job(dag).execute()
    execution.result(timeout=30)
    return execution.metrics()


def letters(pyr: Instance, name: str = "bad") -> list[DeadLetter]:
    return list(pyr.list(name))
