"""Finds the sessions in the log of a web server: the requests of a visitor with no pause of more
than 30 minutes. Lines that are no requests are left out and counted. The log is generated."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pyrite import Pipeline, Stage, agg
from pyrite import processors as p

PAUSE = timedelta(minutes=30)
REQUEST = re.compile(r'(\S+) - - \[([^]]+)\] "GET (\S+) HTTP/1\.1" (\d+) \d+')


@dataclass(frozen=True)
class Request:
    visitor: str
    time: datetime
    page: str


@dataclass(frozen=True)
class Session:
    visitor: str
    length: timedelta
    pages: tuple[str, ...]


def parsed(line: str) -> Request | None:
    found = REQUEST.fullmatch(line)
    if found is None:
        return None
    return Request(found[1], datetime.strptime(found[2], "%d/%b/%Y:%H:%M:%S %z"), found[3])


def sessions_of(visitor: str, requests: list[Request]) -> Iterator[Session]:
    requests.sort(key=lambda request: request.time)
    first = 0
    for n in range(1, len(requests) + 1):
        if n == len(requests) or requests[n].time - requests[n - 1].time > PAUSE:
            pages = tuple(request.page for request in requests[first:n])
            yield Session(visitor, requests[n - 1].time - requests[first].time, pages)
            first = n


def sessions(lines: Stage[str]) -> Stage[Session]:
    requests = lines.filter_map(parsed)
    return requests.group_by(lambda request: request.visitor).map_groups(sessions_of)


def write_log(path: Path) -> None:
    """200 visitors, who come up to four times, on two days. Lines are not in order of time."""
    chance = random.Random(7)
    start = datetime.fromisoformat("2026-05-01T00:00:00+00:00")
    lines = ["-- log rotated --"]
    for visitor in range(200):
        for _ in range(chance.randint(1, 4)):
            time = start + timedelta(minutes=chance.randint(0, 2 * 24 * 60))
            for _ in range(chance.randint(1, 8)):
                page = chance.choice(["/", "/docs", "/prices", "/cart", "/checkout"])
                lines.append(
                    f"10.0.{visitor // 256}.{visitor % 256} - - "
                    f'[{time:%d/%b/%Y:%H:%M:%S %z}] "GET {page} HTTP/1.1" 200 512'
                )
                time += timedelta(seconds=chance.randint(5, 600))
    chance.shuffle(lines)
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder, "access.log"))
        lines = Pipeline().read_from(p.read_files(f"{folder}/*.log"))
        found = sessions(lines)
        [(count, length)] = found.aggregate(
            agg.count(), agg.mean(lambda session: session.length.total_seconds() / 60)
        ).collect()
        print(f"{count} sessions of {length:.1f} minutes on average")
        [bought] = found.filter(lambda session: session.pages[-1] == "/checkout").count().collect()
        print(f"{bought} of them ended at the checkout")
        longest = found.top(1, key=lambda session: len(session.pages)).collect()[0]
        print(f"the longest has {len(longest.pages)} pages")
