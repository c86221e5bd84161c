"""The public names of the package `pyrite.telemetry`."""

from pyrite.telemetry.metrics.endpoint import Endpoint, prometheus
from pyrite.telemetry.metrics.pushing import Pushing, push_to

__all__ = ["Endpoint", "Pushing", "prometheus", "push_to"]
