"""What a vertex calls for each item. Plain data, which travels with the DAG."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyrite.functions import is_async
from pyrite.processors.services.service import Service


@dataclass(frozen=True, slots=True)
class Calls:
    """What to call for each item: `function(item)`, or `function(client, item)`."""

    function: Callable[..., Any]
    service: Service[Any] | None
    in_flight: int
    spreads: bool
    """Whether all items of what the function returns are emitted, one by one."""

    @property
    def is_async(self) -> bool:
        """Whether the calls never block their thread, so that others can use it."""
        return self.service is None or self.service.is_async or is_async(self.function)
