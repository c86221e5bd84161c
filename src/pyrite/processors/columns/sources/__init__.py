"""Files as sources of batches."""
