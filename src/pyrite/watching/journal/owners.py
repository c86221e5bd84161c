"""The process that records a run: whether it still lives tells whether the run may still run."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyrite.system.alive import Identity

SILENT_SECONDS: Final = 60.0
"""A process of another machine that has not written for so long is taken for dead."""


@dataclass(frozen=True, slots=True)
class Owner:
    host: str
    process: Identity

    @classmethod
    def here(cls) -> Owner:
        return cls(socket.gethostname(), Identity.here())

    def is_alive(self, *, last_seen: float, now: float) -> bool:
        if self.host != socket.gethostname():
            return now - last_seen < SILENT_SECONDS
        return self.process.is_alive

    def to_json(self) -> dict[str, Any]:
        return {"host": self.host, "pid": self.process.pid, "started": self.process.started}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Owner:
        return cls(str(found["host"]), Identity(int(found["pid"]), str(found["started"])))
