"""Joins of batches of rows. `spec.py` says what is joined, `key_pairs.py` makes the keys of both
sides comparable, `lookup.py` finds keys of one side on the other, `matches.py` pairs rows,
`columns_out.py` makes the result, and `joining.py` brings them together within a memory budget."""
