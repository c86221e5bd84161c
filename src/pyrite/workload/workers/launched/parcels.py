"""What a master and the host of a launched worker say to each other, over the wire. Every
connection is for one worker: with its end, or the worker's, both have ended."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

PURPOSE: Final = "workload"
"""What the keys are for that come from the secret of a run."""


class Label(IntEnum):
    """What a parcel is. The first three come from the master, the others from the host."""

    START = 1
    """Start a worker: JSON with its segment and plan."""
    ORDER = 2
    """For the worker queue."""
    RECALL = 3
    """Give me the orders back that the worker has not taken."""
    REPORT = 4
    """Some bytes of the worker's reports."""
    RETURNED = 5
    """An order that the worker has not taken."""
    THAT_IS_ALL = 6
    """All that it had not taken when it was asked were returned."""
    ENDED = 7
    """The worker has ended: JSON with how many orders had come until then, and why it ended."""
