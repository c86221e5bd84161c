"""Members: light jobs on several processes and hosts, joined by distributed edges."""

from pyrite.cluster.client import Client, client
from pyrite.cluster.hosts.local import LocalCluster

__all__ = ["Client", "LocalCluster", "client"]
