"""The ready-made processors for batches of rows."""
