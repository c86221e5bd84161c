"""Which stores of workloads and which folders of durable jobs were used, so that the page finds
them again. One small file for each: several processes may write at the same time."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from pyrite.system.private import make_private_folder, write_private
from pyrite.watching.journal import places

logger = logging.getLogger("pyrite.watching")

KnownKind = Literal["workload", "durable"]
MOST: Final = 100


@dataclass(frozen=True, slots=True)
class Known:
    """`place` is the whole path of a folder, or the URL of a deployment. `used` is when it was used
    last."""

    kind: KnownKind
    place: str
    used: float

    @property
    def key(self) -> str:
        """A short name for addresses. It tells nothing about the place."""
        return key_of(self.kind, self.place)


def key_of(kind: KnownKind, place: str) -> str:
    return hashlib.sha256(f"{kind} {place}".encode(errors="surrogatepass")).hexdigest()[:12]


def remember(folder: Path, kind: KnownKind, place: str) -> None:
    """Notes a place in the journal at `folder`. It never raises: nothing depends on it."""
    known = Known(kind, place, time.time())
    try:
        if not folder.exists():
            make_private_folder(folder)
        make_private_folder(folder / places.KNOWN)
        write_private(
            folder / places.KNOWN / f"{known.key}.json", json.dumps(asdict(known)).encode()
        )
    except OSError as error:
        logger.debug("'%s' cannot be noted in '%s': %s", place, folder, error)


def known_places(folder: Path, kind: KnownKind) -> list[Known]:
    """Those that still exist, the one used last first. More than MOST, and folders that are gone,
    are forgotten."""
    found: list[Known] = []
    for path in (folder / places.KNOWN).glob("*.json"):
        try:
            known = Known(**json.loads(path.read_bytes()))
            is_there = "://" in known.place or os.path.isdir(known.place)
        except (OSError, ValueError, TypeError):
            continue
        if known.kind == kind and is_there:
            found.append(known)
        elif not is_there:
            path.unlink(missing_ok=True)
    found.sort(key=lambda known: known.used, reverse=True)
    for known in found[MOST:]:
        (folder / places.KNOWN / f"{known.key}.json").unlink(missing_ok=True)
    return found[:MOST]
