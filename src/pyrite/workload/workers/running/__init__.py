"""Runs one job in a worker: what is around it, and what it leaves behind."""
