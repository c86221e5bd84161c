"""Telemetry by variables of the environment: it is on as long as any instance or client of the
process is open. Without such variables this imports nothing.

What cannot be started is one warning, and never an error: a job must not fail because somebody
else's port is taken."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from pyrite.forks import repair_after_fork
from pyrite.functions import message_of
from pyrite.watching.secrets import without_secrets

logger = logging.getLogger("pyrite.telemetry")


class Closable(Protocol):
    @property
    def is_gone(self) -> bool:
        """Whether it was the parent's, in a process that was forked."""

    def close(self) -> None: ...


class Held:
    """What an instance holds until it is closed."""

    def __init__(self, keys: tuple[_Key, ...]) -> None:
        self._keys = keys

    def close(self) -> None:
        """The last one to close also stops what was started."""
        keys, self._keys = self._keys, ()
        for key in keys:
            _SHARED.release(key)


def from_environment() -> Held:
    """Starts what the variables say, unless it runs already."""
    if os.environ.get("PYRITE_LOG"):
        from pyrite.telemetry.logs import from_environment as log_from_environment

        log_from_environment()
    keys = tuple(
        (name, value) for name, read in _READ.items() if (value := read(os.environ)) is not None
    )
    return Held(tuple(key for key in keys if _SHARED.take(key))) if keys else _NOTHING


_Key = tuple[str, str]
_NOTHING: Final = Held(())


class _Shared:
    """What runs because of a variable, and how many use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[_Key, tuple[Closable, int]] = {}
        self._failed: set[_Key] = set()
        repair_after_fork(self)

    def take(self, key: _Key) -> bool:
        with self._lock:
            running = self._running.get(key)
            if running is not None and not running[0].is_gone:
                self._running[key] = (running[0], running[1] + 1)
                return True
            name, value = key
            try:
                self._running[key] = (_OPEN[name](value), 1)
            except Exception as error:
                if key not in self._failed:
                    self._failed.add(key)
                    logger.warning(
                        "%s: %s; jobs go on without it",
                        _VARIABLES[name],
                        without_secrets(message_of(error)),
                    )
                return False
            return True

    def release(self, key: _Key) -> None:
        with self._lock:
            found, count = self._running.pop(key, (None, 0))
            if found is None:
                return
            if count > 1:
                self._running[key] = (found, count - 1)
                return
        try:
            found.close()
        except Exception as error:
            logger.warning("%s: %s", _VARIABLES[key[0]], without_secrets(message_of(error)))

    def after_fork(self) -> None:
        """The child has instances of its own: when these are closed, what they have to tell is
        sent."""
        self._lock = threading.Lock()
        self._running = {key: (found, 0) for key, (found, _) in self._running.items()}


_SHARED: Final = _Shared()


def _open_prometheus(value: str) -> Closable:
    from pyrite.telemetry.metrics.endpoint import endpoint_from

    return endpoint_from(value)


def _open_gateway(value: str) -> Closable:
    from pyrite.telemetry.metrics.pushing import push_to

    return push_to(value)


def _open_traces(_: str) -> Closable:
    from pyrite.telemetry.spans.tracing import traces

    return traces()


def _open_lineage(_: str) -> Closable:
    from pyrite.telemetry.openlineage.lineage import lineage

    return lineage()


def _variable(name: str) -> Callable[[Mapping[str, str]], str | None]:
    return lambda environ: environ.get(name, "").strip() or None


def _wants_endpoint(environ: Mapping[str, str]) -> str | None:
    """A worker of a workload does not live long enough to be scraped, and its master has the
    port."""
    return None if "PYRITE_WORKLOAD_RUN" in environ else _variable("PYRITE_PROMETHEUS")(environ)


def _wants_traces(environ: Mapping[str, str]) -> str | None:
    """What the variables of OpenTelemetry say, if they say where traces go."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip()
    if exporter == "none":
        return None
    return (
        environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "").strip()
        or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
        or exporter
        or None
    )


def _wants_lineage(environ: Mapping[str, str]) -> str | None:
    """What the variables of OpenLineage say, if they say where events go."""
    if environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return None
    found = [
        f"{name}={environ.get(name)}"
        for name in sorted(environ)
        if name in ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG")
        # The client adds those of the default transport itself, for a moment.
        or (name.startswith("OPENLINEAGE__TRANSPORT") and "__DEFAULT_HTTP__" not in name)
    ]
    return "\n".join(found) or None


_READ: Final[Mapping[str, Callable[[Mapping[str, str]], str | None]]] = {
    "prometheus": _wants_endpoint,
    "gateway": _variable("PYRITE_PUSHGATEWAY"),
    "traces": _wants_traces,
    "lineage": _wants_lineage,
}
_OPEN: Final[Mapping[str, Callable[[str], Closable]]] = {
    "prometheus": _open_prometheus,
    "gateway": _open_gateway,
    "traces": _open_traces,
    "lineage": _open_lineage,
}
_VARIABLES: Final[Mapping[str, str]] = {
    "prometheus": "PYRITE_PROMETHEUS",
    "gateway": "PYRITE_PUSHGATEWAY",
    "traces": "OTEL_*",
    "lineage": "OPENLINEAGE_*",
}
