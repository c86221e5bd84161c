"""The public names of the package `pyrite.telemetry`."""

from pyrite.telemetry.logs import JsonLogs, json_logs
from pyrite.telemetry.metrics.endpoint import Endpoint, prometheus
from pyrite.telemetry.metrics.pushing import Pushing, push_to
from pyrite.telemetry.openlineage.lineage import Lineage, lineage
from pyrite.telemetry.spans.tracing import Tracing, traces

__all__ = [
    "Endpoint",
    "JsonLogs",
    "Lineage",
    "Pushing",
    "Tracing",
    "json_logs",
    "lineage",
    "prometheus",
    "push_to",
    "traces",
]
