"""The partition of each row, without a loop over rows."""
