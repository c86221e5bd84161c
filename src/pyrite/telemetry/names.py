"""The public names of the package `pyrite.telemetry`."""

from pyrite.telemetry.metrics.endpoint import Endpoint, prometheus
from pyrite.telemetry.metrics.pushing import Pushing, push_to
from pyrite.telemetry.spans.tracing import Tracing, traces

__all__ = ["Endpoint", "Pushing", "Tracing", "prometheus", "push_to", "traces"]
