"""Traces for OpenTelemetry: run -> job -> stage, never an item. `records.py` and `stages.py` say
what the spans are, without the library; `tracing.py` is told of runs; `exporting.py` makes the
spans of the library and sends them, in the background."""
