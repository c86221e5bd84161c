"""The coordinator as a function: `decide` takes what it knows and one event, and returns one entry
of the log."""
