"""The secret of a cluster, and the key pair that is derived from it."""

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
    """A CURVE key pair, encoded as ZeroMQ takes it. All processes that know the secret have the
    same pair. A process without it cannot complete the handshake."""

    public: bytes
    secret: bytes


def keys_from(secret: str, purpose: str = "members") -> Keys:
    """Derives the key pair from a secret. Each purpose has its own pair, so that a peer with the
    same secret but another purpose is refused like any stranger."""
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
