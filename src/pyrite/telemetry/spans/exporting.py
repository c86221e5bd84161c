"""Makes spans of OpenTelemetry's SDK from records, and exports them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context, attach, set_value
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pyrite.errors import PyriteError
from pyrite.telemetry.reachable import check_reachable
from pyrite.telemetry.spans.records import Span
from pyrite.version import __version__


def exporting() -> Callable[[Iterable[Span]], None]:
    """What exports spans, on the calling thread. Raises OSError if the collector does not take
    them."""
    attach(set_value("suppress_instrumentation", True))  # an export must not be traced itself
    theirs = trace.get_tracer_provider()
    if isinstance(theirs, TracerProvider):  # set by the program, which also exports
        return _Making(theirs.get_tracer("pyrite", __version__), _Ids()).make_all
    return _Exporting(exporters_of_environment()).export


class _Exporting:
    def __init__(self, exporters: list[SpanExporter]) -> None:
        self._exporters = exporters
        ids = _Ids()
        provider = TracerProvider(resource=_resource(), id_generator=ids, shutdown_on_exit=False)
        self._ended = _Ended()
        provider.add_span_processor(self._ended)
        self._making = _Making(provider.get_tracer("pyrite", __version__), ids)

    def export(self, spans: Iterable[Span]) -> None:
        self._making.make_all(spans)
        made, self._ended.spans = self._ended.spans, []
        for exporter in self._exporters if made else ():
            check_reachable(getattr(exporter, "_endpoint", ""))
            with _Heard(exporter) as heard:
                result = exporter.export(made)
            if result is not SpanExportResult.SUCCESS:
                raise ConnectionError(
                    ": ".join(("it did not take the spans", *heard.messages[-1:]))
                )


class _Heard(logging.Filter):
    """What an exporter logs on this thread becomes the message of the one warning."""

    def __init__(self, exporter: SpanExporter) -> None:
        super().__init__()
        self._logger = logging.getLogger(type(exporter).__module__)
        self._thread = threading.get_ident()
        self.messages: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        if record.thread != self._thread:
            return True
        self.messages.append(record.getMessage())
        return False

    def __enter__(self) -> _Heard:
        self._logger.addFilter(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeFilter(self)


class _Making:
    def __init__(self, tracer: trace.Tracer, ids: _Ids) -> None:
        self._tracer = tracer
        self._ids = ids

    def make_all(self, spans: Iterable[Span]) -> None:
        for span in spans:
            self._make(span, _context_of(span.parent))

    def _make(self, span: Span, context: Context) -> None:
        self._ids.next_trace, self._ids.next_span = span.trace, span.id
        made = self._tracer.start_span(
            span.name,
            context,
            attributes=dict(span.attributes),
            start_time=_nanoseconds(span.start),
        )
        inner = trace.set_span_in_context(made, context)
        for child in span.children:
            self._make(child, inner)
        if span.failure is not None:
            made.add_event(
                "exception",
                {
                    "exception.message": span.failure.message,
                    "exception.stacktrace": span.failure.traceback,
                },
                timestamp=_nanoseconds(span.end),
            )
            made.set_status(Status(StatusCode.ERROR, span.failure.message))
        made.end(end_time=_nanoseconds(span.end))


class _Ids(RandomIdGenerator):
    """Random ids, unless one is chosen for the next span."""

    next_trace: int | None = None
    next_span: int | None = None

    def generate_trace_id(self) -> int:
        chosen, self.next_trace = self.next_trace, None
        return super().generate_trace_id() if chosen is None else chosen

    def generate_span_id(self) -> int:
        chosen, self.next_span = self.next_span, None
        return super().generate_span_id() if chosen is None else chosen


class _Ended(SpanProcessor):
    """Keeps the spans that have ended, until they are exported."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        context = span.context
        if context is not None and context.trace_flags.sampled:
            self.spans.append(span)


def exporters_of_environment() -> list[SpanExporter]:
    """Those that OTEL_TRACES_EXPORTER names; by default OTLP over HTTP. Raises PyriteError."""
    names = os.environ.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    found = [name.strip() for name in names.split(",")]
    return [_exporter(name) for name in found if name and name != "none"]


def _exporter(name: str) -> SpanExporter:
    wanted = name
    if name == "otlp":
        protocol = (
            os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
            or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
            or "http/protobuf"
        )
        wanted = "otlp_proto_grpc" if protocol.strip() == "grpc" else "otlp_proto_http"
    for entry in entry_points(group="opentelemetry_traces_exporter", name=wanted):
        made: SpanExporter = entry.load()()
        return made
    package = wanted.replace("_", "-")
    raise PyriteError(
        f"there is no exporter '{name}' of OpenTelemetry; run: pip install "
        f"opentelemetry-exporter-{package}"
    )


def _resource() -> Resource:
    named: dict[str, Any] = {}
    attributes = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    if not os.environ.get("OTEL_SERVICE_NAME") and f"{SERVICE_NAME}=" not in attributes:
        named[SERVICE_NAME] = "pyrite"
    return Resource.create(named)


def _context_of(parent: str | None) -> Context:
    if parent is None:
        return Context()
    carrier = {"traceparent": parent, "tracestate": os.environ.get("TRACESTATE", "")}
    return TraceContextTextMapPropagator().extract(carrier, Context())


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
