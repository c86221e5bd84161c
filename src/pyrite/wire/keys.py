"""From the secret that members share to the keys that prove who knows it."""

from __future__ import annotations

import hashlib
import secrets
from typing import NamedTuple

import zmq
from zmq.utils import z85

from pyrite.errors import PyriteError
from pyrite.functions import shorten

SHORTEST_SECRET = 16


class Keys(NamedTuple):
    """A CURVE key pair, as ZeroMQ takes it. All who know the secret have the same one: who does not
    know it cannot even begin to talk to a member."""

    public: bytes
    secret: bytes


def keys_from(secret: str, purpose: str = "members") -> Keys:
    """The key pair that belongs to a secret. It is another one for each purpose, so that those who
    use the wire for one thing do not even begin to talk to those who use it for another."""
    if not isinstance(secret, str) or len(secret) < SHORTEST_SECRET:
        raise PyriteError(
            f"the secret of a cluster must be a string of at least {SHORTEST_SECRET} characters; "
            f"got {'a shorter one' if isinstance(secret, str) else shorten(type(secret))}; "
            'make one with python -c "import secrets; print(secrets.token_hex(32))"'
        )
    key = hashlib.blake2b(secret.encode()).digest()
    label = f"pyrite {purpose}".encode()
    derived = z85.encode(hashlib.blake2b(label, key=key, digest_size=32).digest())
    return Keys(zmq.curve_public(derived), derived)


def new_secret() -> str:
    return secrets.token_hex(32)
