"""What is on disk: the store with its journal, segments, results and queues."""
