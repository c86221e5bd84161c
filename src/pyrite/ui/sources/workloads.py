"""Workloads: the runs in the stores that the page knows. A store belongs to one run at a time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from pyrite.errors import PyriteError
from pyrite.ui.graphs import graph
from pyrite.workload.run import Run
from pyrite.workload.storage.store import Store
from pyrite.workload.views.documents import log_document, phase_of, run_document

T = TypeVar("T")

OPEN_RUNS: Final = 8
"""The plan of a run may be large, so the handles of a few runs stay in memory only."""


class Workloads:
    """`stores` returns the folders by key. They may become more while the page is open."""

    def __init__(self, stores: Callable[[], Mapping[str, Path]]) -> None:
        self.stores = stores
        self._lock = threading.RLock()
        """One thread at a time uses a handle."""
        self._open: OrderedDict[str, tuple[object, Run]] = OrderedDict()
        """By key: which run it is, and its handle."""
        self._ended: dict[tuple[str, str], tuple[object, dict[str, Any]]] = {}
        """By key and kind of document: what the status was, and the document of a run that has
        ended, which does not change."""

    def rows(self) -> list[dict[str, Any]]:
        """The one that started last is first."""
        found = [self._row(key, store) for key, store in self.stores().items()]
        return sorted(found, key=lambda row: row["started"] or 0.0, reverse=True)

    def document(self, key: str) -> dict[str, Any]:
        return self._kept(key, "whole", lambda run: _document(key, run))

    def graph(self, key: str, unfold: frozenset[str]) -> str:
        names, edges = self._with_run(
            key, lambda run: ([row["job"] for row in run.table()], run.edges())
        )
        return graph(names, ((a, b, "") for a, b in edges), unfold, "jobs")

    def log(self, key: str, job: str) -> dict[str, Any]:
        return self._with_run(key, lambda run: log_document(run, job))

    def cancel(self, key: str) -> str | None:
        """Asks the run to stop, and does not wait until it has. The phase, or None if it has
        ended."""

        def cancel(run: Run) -> str | None:
            if run.has_ended:
                return None
            try:
                run.cancel(timeout=0.0)
            except TimeoutError:
                pass
            return phase_of(run)

        return self._with_run(key, cancel)

    def _row(self, key: str, store: Path) -> dict[str, Any]:
        row = {"key": key, "store": str(store), "label": store.name}
        try:
            return {**row, **self._kept(key, "row", _summary)}
        except (PyriteError, OSError) as error:
            return {
                **row,
                "phase": "unreadable",
                "started": None,
                "ended": None,
                "seconds": 0.0,
                "counts": {},
                "problem": str(error),
            }

    def _kept(self, key: str, kind: str, make: Callable[[Run], dict[str, Any]]) -> dict[str, Any]:
        store = Store(self._store(key))
        status = store.status()
        known = self._ended.get((key, kind))
        if known is not None and known[0] == status:
            return known[1]
        document = self._with_run(key, make)
        if status is not None and status.has_ended:
            self._ended[key, kind] = (status, document)
        return document

    def _with_run(self, key: str, use: Callable[[Run], T]) -> T:
        store = self._store(key)
        with self._lock:
            which = _which(store)
            known, run = self._open.pop(key, (None, None))
            if run is None or known != which:
                run = Run.attach(store)
            result = use(run)
            self._open[key] = which, run
            while len(self._open) > OPEN_RUNS:
                self._open.popitem(last=False)
            return result

    def _store(self, key: str) -> Path:
        found = self.stores().get(key)
        if found is None:
            raise UnknownWorkload(f"there is no workload '{key}' here")
        return found


class UnknownWorkload(PyriteError):
    pass


def _which(folder: Path) -> object:
    """Tells the runs in a store apart. The numbers of runs begin again in a store that was removed
    and made again."""
    status = Store(folder).status()
    return None if status is None else (status.run, status.started, status.master)


def _summary(run: Run) -> dict[str, Any]:
    found = run_document(run)
    del found["jobs"], found["critical_path_seconds"], found["store"]
    return found


def _document(key: str, run: Run) -> dict[str, Any]:
    found, why = run_document(run), run.reasons()
    return {
        **found,
        "key": key,
        "label": run.store.name,
        "can_cancel": not run.has_ended,
        "edges": [list(edge) for edge in run.edges()],
        "jobs": [{**row, "why": why.get(row["job"])} for row in found["jobs"]],
    }
