"""Files as sinks of batches."""
