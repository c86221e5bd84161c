"""Metrics of a job on Spark while it runs: tasks tell a socket of the driver's what they have done,
about once a second. Where they cannot reach it, nothing is known, and nothing waits or fails."""
