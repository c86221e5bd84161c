"""What platform teams expect: Prometheus, OpenTelemetry, OpenLineage, logs as JSON lines."""
