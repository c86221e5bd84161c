"""Which stores of workloads and which folders of durable jobs were used, so that the page finds
them again. One small file for each: several processes may write at the same time."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from pyrite.system.private import make_private_folder, write_private
from pyrite.watching.journal import places

logger = logging.getLogger("pyrite.watching")

KnownKind = Literal["workload", "durable"]
MOST: Final = 100
GONE_SECONDS: Final = 30 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Known:
    """`place` is the whole path of a folder, or the URL of a deployment. `used` is when it was used
    last."""

    kind: KnownKind
    place: str
    used: float

    @property
    def is_there(self) -> bool:
        return "://" in self.place or os.path.isdir(self.place)

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
        _forget_old(folder)
    except OSError as error:
        logger.debug("'%s' cannot be noted in '%s': %s", place, folder, error)


def known_places(folder: Path, kind: KnownKind) -> list[Known]:
    """Those that are there now, the one used last first. It changes nothing: a share that is not
    mounted may come back, and not all who look may write."""
    found = [known for known in _all(folder).values() if known.kind == kind and known.is_there]
    return sorted(found, key=lambda known: known.used, reverse=True)[:MOST]


def _all(folder: Path) -> dict[Path, Known]:
    found: dict[Path, Known] = {}
    for path in (folder / places.KNOWN).glob("*.json"):
        try:
            known = json.loads(path.read_bytes())
            found[path] = Known(known["kind"], str(known["place"]), float(known["used"]))
        except (OSError, ValueError, TypeError, KeyError):
            continue
    return found


def _forget_old(folder: Path) -> None:
    """More than MOST of a kind, and those that are gone and were not used for long."""
    oldest = time.time() - GONE_SECONDS
    count: Counter[str] = Counter()
    for path, known in sorted(_all(folder).items(), key=lambda each: -each[1].used):
        count[known.kind] += 1
        if count[known.kind] > MOST or (known.used < oldest and not known.is_there):
            path.unlink(missing_ok=True)
