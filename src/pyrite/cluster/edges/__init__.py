"""Distributed edges: packets, flow control, and the two ends of each edge."""
