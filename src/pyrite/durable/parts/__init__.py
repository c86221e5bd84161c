"""One part of a task on the engine: it is fed messages, comes to rest, and commits."""
