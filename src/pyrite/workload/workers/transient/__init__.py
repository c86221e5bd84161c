"""Transient workers: executors, and the tasks that they run."""
