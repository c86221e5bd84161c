"""Cuts a DAG into tasks, and its sources into splits. Pure code."""
