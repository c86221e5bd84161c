"""The maps and lists of a deployment: they are in Redis. What a completed job adds changes them in
one step, and once."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Final

from pyrite.collections.redis import RedisCollections
from pyrite.collections.redis.attempts import Attempt
from pyrite.collections.redis.commits import WrittenJob
from pyrite.collections.redis.maps import flat_entries
from pyrite.collections.redis.names import job_key
from pyrite.collections.stored.values import packed
from pyrite.exchange.collected import Collected

MARK_SECONDS: Final = 366 * 24 * 3600
"""A completion that is repeated later than this would add everything again."""


class DeploymentCollections(RedisCollections):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._url = url

    def apply(self, job: str, collected: Iterable[Collected]) -> bool:
        """Adds all that a completed job has collected. False if that was done before: then it
        changes nothing. Everything is first written under keys of this attempt, as it comes, and
        then moved in one step: so two peers that complete the same job do not meet before that."""
        of, mark = f"what job '{job}' adds to maps and lists", job_key(job) + b":applied"
        if self.server.call(of, "EXISTS", mark):
            return False
        id = f"{job}:{secrets.token_hex(8)}"
        written = WrittenJob(self._url, id, mark=mark, mark_seconds=MARK_SECONDS)
        attempt = Attempt(self.server, id, "completion", "0")
        try:
            written.begin()
            for each in collected:
                if each.kind == "map":
                    values = flat_entries(each.contents.items())
                else:
                    values = [packed(value) for value in each.contents]
                attempt.add(each.kind, each.name, values)
            return written.commit(attempt.flush())
        finally:
            attempt.close()
            written.end()
