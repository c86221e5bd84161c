"""Sorts of batches, also of more than fits into memory."""
