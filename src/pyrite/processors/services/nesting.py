"""Refuses to wait for a job with async steps on the event loop that must run these steps."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from pyrite.errors import PyriteError
from pyrite.processors.services.calling import CallSupplier

if TYPE_CHECKING:
    from pyrite.dag import DAG

LOOP_THREAD: Final = "pyrite-asyncio"
"""The name of the thread with the event loop of the process."""


def check_wait_for(dag: DAG) -> None:
    """Raises PyriteError if the calling thread has the event loop that the DAG needs."""
    if is_on_event_loop() and any(_needs_event_loop(each.supplier) for each in dag.vertices):
        raise PyriteError(
            "a job with async steps cannot be waited for on Pyrite's event loop, because these "
            "steps must run there. Inside an async function, wait on another thread, for example "
            "with `await asyncio.to_thread(stage.collect)`"
        )


def is_on_event_loop() -> bool:
    return threading.current_thread().name == LOOP_THREAD


def _needs_event_loop(supplier: object) -> bool:
    return isinstance(supplier, CallSupplier) and supplier.calls.is_async
