"""The durable queues between the tasks of jobs: in a SQLite file of a folder, or in NATS."""
