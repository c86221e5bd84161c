"""Sources: all that a page shows. What others start while it is open appears by itself."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyrite.closing import Closing
from pyrite.ui.sources.deployments import Deployment
from pyrite.ui.sources.runs import Runs
from pyrite.ui.sources.workloads import Workloads
from pyrite.watching.journal import Journal
from pyrite.watching.journal.known import key_of, known_places
from pyrite.watching.recording import Recorder
from pyrite.watching.rows import RunSource


class Sources(Closing):
    """The runs of this process, if it records them; those in the journal at `folder`; the stores of
    workloads and the places of durable jobs that are given, and those that the journal knows."""

    def __init__(
        self,
        folder: Path,
        *,
        recorder: Recorder | None = None,
        workloads: Sequence[Path] = (),
        durable: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self._own: list[RunSource] = [] if recorder is None else [recorder]
        self._own.append(Journal(folder))
        self._stores = {key_of("workload", os.fspath(each)): each for each in workloads}
        self._lock = threading.Lock()
        self._deployments: dict[str, Deployment] = {}
        self._given = {key_of("durable", place): place for place in durable}
        self.runs = Runs(lambda: [*self._own, *self.deployments().values()])
        self.workloads = Workloads(self._all_stores)

    def deployments(self) -> dict[str, Deployment]:
        """By key."""
        places = dict(self._given)
        for known in known_places(self.folder, "durable"):
            places.setdefault(known.key, known.place)
        with self._lock:
            for key, place in places.items():
                if key not in self._deployments:
                    self._deployments[key] = Deployment(key, place)
            return {key: self._deployments[key] for key in places}

    def labels(self) -> list[dict[str, Any]]:
        """What there is, for the navigation of the page."""
        found = [("runs", "runs", os.fspath(self.folder))]
        found += [("workload", key, store.name) for key, store in self._all_stores().items()]
        found += [("durable", key, each.label) for key, each in self.deployments().items()]
        return [{"kind": kind, "key": key, "label": label} for kind, key, label in found]

    def close(self) -> None:
        with self._lock:
            for each in self._deployments.values():
                each.close()

    def _all_stores(self) -> dict[str, Path]:
        stores = dict(self._stores)
        for known in known_places(self.folder, "workload"):
            stores.setdefault(known.key, Path(known.place))
        return stores
