"""The wire between processes: ZeroMQ connections, authenticated and encrypted, and the messages
on them."""
