"""Durable queues in NATS JetStream: on one server or cluster, or spread over several."""

from pyrite.durable.queues.nats.queues import NatsQueues

__all__ = ["NatsQueues"]
