"""Joins and co-groups of two inputs by key."""
