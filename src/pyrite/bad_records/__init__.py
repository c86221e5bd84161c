"""What a vertex does with an item that it cannot process. Plain data and pure functions; the
engines act on it."""

from pyrite.bad_records.handling import (
    BadRecord,
    Handler,
    Handling,
    NotAboutOneItem,
    TooManyBadRecords,
    over_limit,
)
from pyrite.bad_records.letters import (
    DeadLetter,
    letter_of,
    repr_of,
    stable_traceback,
    with_text,
    without_addresses,
)
from pyrite.bad_records.policies import (
    FAIL,
    ErrorPolicy,
    OnError,
    checked_policy,
    dead_letter,
    skip,
)

__all__ = [
    "FAIL",
    "BadRecord",
    "DeadLetter",
    "ErrorPolicy",
    "Handler",
    "Handling",
    "NotAboutOneItem",
    "OnError",
    "TooManyBadRecords",
    "checked_policy",
    "dead_letter",
    "letter_of",
    "over_limit",
    "repr_of",
    "skip",
    "stable_traceback",
    "with_text",
    "without_addresses",
]
