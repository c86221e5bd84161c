"""Which job runs next, and what follows when one ends. Pure: no processes, no files."""
