"""Why the result of a job has a marked fingerprint: a worker has run code that was not planned."""

from __future__ import annotations

from pyrite.workload.input.sources.marks import marked_source
from pyrite.workload.input.sources.sources import OpenSources
from pyrite.workload.storage.cleanup_queue import Record
from pyrite.workload.storage.result_table import Found
from pyrite.workload.storage.store import Store


def why_edited(store: Store, plan: int, found: Record | Found | None) -> tuple[str, ...]:
    """A sentence; nothing if the fingerprint is not marked."""
    source = marked_source(found.fingerprint) if found is not None else None
    if source is None:
        return ()
    name = OpenSources(store.plan(plan)).name(source)
    return (f"its source {name} was changed, and the worker may have run another version",)
