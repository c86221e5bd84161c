"""What the vertices of a job have done."""

from __future__ import annotations

import json
from typing import Any

from pyrite.durable.protocol.tree import paths
from pyrite.durable.store.store import Store


def metrics_of(store: Store, job: str) -> dict[str, Any]:
    """By vertex. They are exact when the job is complete."""
    text = store.get(paths.metrics(job))
    found: dict[str, Any] = {} if text is None else json.loads(text)
    return found
