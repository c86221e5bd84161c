"""Where the servers of a deployment are, as its URL says it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from pyrite.durable.store.store import StoreError

SCHEME: Final = "zk://"
EXAMPLE: Final = "zk://host1:2181,host2:2181/prod?nats=nats://host:4222"
SESSION_SECONDS: Final = 2.0
OPTIONS: Final = ("nats", "secret", "session")


@dataclass(frozen=True, slots=True)
class Deployment:
    """`nats` has one element for each NATS server that queues are spread over; the servers of one
    NATS cluster are one element, with commas. `secret` protects the nodes in ZooKeeper. `session`
    is the time in seconds after which ZooKeeper takes a silent process for dead.

    >>> found = Deployment.parse("zk://h1,h2:2182/prod?nats=nats://a:4222&nats=b,c&secret=x%26y")
    >>> found.hosts, found.cluster, found.root
    (('h1:2181', 'h2:2182'), 'prod', '/pyrite/prod')
    >>> found.nats, found.secret, found.session
    (('nats://a:4222', 'b,c'), 'x&y', 2.0)
    """

    hosts: tuple[str, ...]
    cluster: str
    nats: tuple[str, ...] = ()
    secret: str | None = field(default=None, repr=False)
    session: float = SESSION_SECONDS

    @property
    def root(self) -> str:
        return f"/pyrite/{self.cluster}"

    @classmethod
    def parse(cls, url: str) -> Deployment:
        if not url.startswith(SCHEME):
            raise StoreError(f"the URL of a deployment looks like {EXAMPLE}; got {hidden(url)}")
        place, _, query = url.removeprefix(SCHEME).partition("?")
        hosts, _, cluster = place.partition("/")
        options = _options(url, query)
        return cls(
            hosts=tuple(_host(url, host) for host in hosts.split(",")),
            cluster=_cluster(url, unquote(cluster)),
            nats=tuple(options.get("nats", ())),
            secret=_once(url, options, "secret"),
            session=_session(url, _once(url, options, "session")),
        )


def hidden(url: str) -> str:
    """The URL for messages, without secrets.

    >>> hidden("zk://h/prod?secret=abc&nats=nats://user:word@h")
    'zk://h/prod?secret=...&nats=nats://...@h'
    """
    url = re.sub(r"(\bsecret=)[^&]*", r"\1...", url)
    return re.sub(r"://[^/@&,]*@", "://...@", url)


def _host(url: str, text: str) -> str:
    """
    >>> _host("", "[::1]:2181"), _host("", "h")
    ('[::1]:2181', 'h:2181')
    """
    found = re.fullmatch(r"([^\s:\[\]@]+|\[[0-9a-fA-F:.]+\])(?::(\d{1,5}))?", text)
    if found is None or not 0 < int(found[2] or 2181) < 65536:
        raise StoreError(
            f"{text!r} is not a host and port of ZooKeeper in {hidden(url)}; write for example"
            f" {EXAMPLE}"
        )
    return f"{found[1]}:{int(found[2] or 2181)}"


def _cluster(url: str, text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", text):
        what = (
            f"{text!r} is not a name of a cluster" if text else "the name of the cluster is missing"
        )
        raise StoreError(
            f"{what} in {hidden(url)}; write it after the hosts, with letters, digits, '_', '-'"
            f" and '.', for example {EXAMPLE}"
        )
    return text


def _options(url: str, query: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        if name not in OPTIONS or not value:
            raise StoreError(
                f"{name!r} in {hidden(url)} has no value or is not one of the options "
                f"{', '.join(OPTIONS)}; write for example {EXAMPLE}"
            )
        found.setdefault(name, []).append(unquote(value))
    return found


def _once(url: str, options: dict[str, list[str]], name: str) -> str | None:
    values = options.get(name, [])
    if len(values) > 1:
        raise StoreError(f"{hidden(url)} has {name!r} {len(values)} times; leave one")
    return values[0] if values else None


def _session(url: str, text: str | None) -> float:
    try:
        seconds = SESSION_SECONDS if text is None else float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 3600:
        raise StoreError(
            f"session={text} in {hidden(url)} is not a number of seconds from 0.1 to 3600"
        )
    return seconds
