"""Benchmarks: Pyrite against a plain loop, a thread pool and other tools. Both times of a ratio are
measured in the same run on the same machine."""
