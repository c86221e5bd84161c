"""Runs pipelines. The only module of the room that knows instances."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

from pyrite.dag import DAG, from_
from pyrite.errors import PyriteError
from pyrite.functions import shorten
from pyrite.instances import Instance, instance
from pyrite.processors.collections import write_list
from pyrite.processors.services.nesting import check_wait_for
from pyrite.where import users_line


def checked(on: Instance | None, method: str) -> Instance | None:
    """The argument `on` of a method. Raises PyriteError if it is no instance."""
    if on is None or callable(getattr(on, "new_job", None)):
        return on
    raise PyriteError(
        f"on of {method}() in {users_line()} must be an instance, as pyrite.instance() opens it; "
        f"got {shorten(on)}"
    )


def to_end(dag: DAG, on: Instance | None) -> None:
    """Runs a DAG as a light job here, or as a normal job on an instance."""
    if on is not None:
        on.new_job(dag).execute().result()
        return
    check_wait_for(dag)
    with instance() as pyr:
        pyr.new_light_job(dag).execute().result()


def collected(dag: DAG, name: str, on: Instance | None) -> list[Any]:
    """Runs a DAG that writes to the named list `name`, and returns what it has written."""
    if on is not None:
        try:
            on.new_job(dag).execute().result()
            return on.list(name).copy()
        finally:
            on.list(name).clear()
    check_wait_for(dag)
    with instance() as pyr:
        pyr.new_light_job(dag).execute().result()
        return pyr.list(name).copy()


def here(dag: DAG) -> dict[str, Any]:
    """Runs a DAG as a light job in this process, on one thread. Returns its metrics."""
    check_wait_for(dag)
    with instance(cooperative_threads=1) as pyr:
        execution = pyr.new_light_job(dag).execute()
        execution.result()
        return execution.metrics()


def lists_on(on: Instance) -> Callable[[DAG, Sequence[str]], list[list[Any]]]:
    """A function that runs a DAG as a normal job of an instance, and returns what these vertices
    emit."""

    def collect(dag: DAG, vertices: Sequence[str]) -> list[list[Any]]:
        lists = [new_list_name() for _ in vertices]
        for name, vertex in zip(lists, vertices):
            ordinal = len(dag.outbound(dag[vertex]))
            dag.edge(from_(dag[vertex], ordinal).to(dag.vertex(name, write_list(name))))
        try:
            on.new_job(dag).execute().result()
            return [on.list(name).copy() for name in lists]
        finally:
            for name in lists:
                on.list(name).clear()

    return collect


def new_list_name() -> str:
    """A name that no other list has."""
    return f"collect-{secrets.token_hex(8)}"
