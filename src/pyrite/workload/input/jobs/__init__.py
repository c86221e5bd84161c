"""A job of a workload: what the user gives, and what of it the master and the worker need."""
