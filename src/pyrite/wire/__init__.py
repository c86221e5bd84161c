"""The wire that processes talk over: ZeroMQ connections, authenticated and encrypted, and the
messages on them."""
