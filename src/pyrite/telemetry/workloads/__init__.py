"""Workloads in traces and in lineage: the ids of a run and of its jobs, which masters and workers
make of the same text, and the parent that a job in a worker gives to what it runs."""
