"""Normal jobs that a client submits: the member that gets one drives it on Spark."""
