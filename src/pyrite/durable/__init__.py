"""Durable jobs: the tasks of a DAG run on virtual peers, linked by durable queues. A coordinator
offers tasks to peers and handles their deaths."""
