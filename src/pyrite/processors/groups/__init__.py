"""Folds: grouping, aggregates, and what orders items. They spill to disk if memory is short."""
