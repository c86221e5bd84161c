"""Metrics of all runs of this process for Prometheus. `totals.py` counts, `observer.py` is told of
runs, `families.py` says what the metrics are called; `endpoint.py` is scraped, `pushing.py` pushes
to a gateway."""
