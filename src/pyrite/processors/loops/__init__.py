"""The loop that a chain of steps becomes: `steps` describes the steps, `loop` writes the code, and
`chain` runs it."""
