"""The namespaces and names of datasets, as OpenLineage's naming convention has them. Pure. No user,
password or token of a URL is part of a name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Name:
    namespace: str
    name: str


def of_path(path: str) -> Name:
    """A file or a folder.

    >>> of_path("/data/orders")
    Name(namespace='file', name='/data/orders')
    >>> of_path("s3://key:secret@bucket/orders/2024?token=x")
    Name(namespace='s3://bucket', name='orders/2024')
    >>> of_path("hdfs://node:8020/data/orders")
    Name(namespace='hdfs://node:8020', name='/data/orders')
    """
    if "://" not in path:
        return Name("file", path)
    parts = urlsplit(path)
    scheme = _SCHEMES.get(parts.scheme, parts.scheme)
    if scheme in ("file", "local"):
        return Name("file", parts.path)
    place = parts.netloc.rpartition("@")[2]
    if scheme in ("abfss", "wasbs"):  # where the container is before the @
        place = parts.netloc
    name = parts.path
    if scheme in ("s3", "gs", "memory"):  # buckets, whose keys have no slash at the beginning
        name = name.lstrip("/")
    return Name(f"{scheme}://{place}", name.rstrip("/") or "/")


def of_pattern(pattern: str) -> Name:
    """The files that match a pattern: the folder that they are in; one file if it is no pattern.

    >>> of_pattern("/data/orders/2024-*/part-?.csv").name
    '/data/orders'
    >>> of_pattern("/data/orders.csv").name
    '/data/orders.csv'
    >>> of_pattern("https://host/data.csv?sig=x")
    Name(namespace='https://host', name='/data.csv')
    """
    is_page = pattern.startswith(("http://", "https://"))  # where "?" begins a query
    found = re.search(r"[*\[]" if is_page else r"[*?\[]", pattern)
    return of_path(pattern if found is None else pattern[: found.start()].rpartition("/")[0] or "/")


def of_table(
    backend: str, host: str | None, port: int | None, database: str | None, table: str
) -> Name:
    """A table of a database.

    >>> of_table("postgresql", "db", None, "shop", "orders")
    Name(namespace='postgres://db:5432', name='shop.public.orders')
    >>> of_table("sqlite", None, None, "/data/shop.db", "main.orders")
    Name(namespace='sqlite:///data/shop.db', name='orders')
    >>> of_table("mysql", "db", 3307, "shop", "orders")
    Name(namespace='mysql://db:3307', name='shop.orders')
    """
    table = table.replace('"', "").replace("`", "")
    if backend == "sqlite":
        return Name(f"sqlite://{database}", table.removeprefix("main."))
    scheme = {"postgresql": "postgres", "mariadb": "mysql"}.get(backend, backend)
    place = f"{host or 'localhost'}:{port or _PORTS.get(scheme, '')}".rstrip(":")
    schema = _SCHEMAS.get(scheme)
    if schema is not None and "." not in table:
        table = f"{schema}.{table}"
    return Name(f"{scheme}://{place}", ".".join(filter(None, (database, table))))


def tables_in(query: str) -> tuple[str, ...]:
    """The tables that a query reads, as far as one can see without the grammar of its database.

    >>> tables_in("with x as (select * from a.b) select * from x join c on 1 -- from d")
    ('a.b', 'c')
    >>> tables_in("select extract(year from day), 'from z' from orders o, lines")
    ('orders', 'lines')
    """
    text = re.sub(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", " ", query, flags=re.DOTALL)
    text = re.sub(r"\b(?:extract|substring|trim)\s*\([^()]*\)", " ", text, flags=re.IGNORECASE)
    own = {name.lower() for name in re.findall(r"\b(\w+)\s+as\s*\(", text, re.IGNORECASE)}
    found: dict[str, None] = {}
    for listed in _FROM.findall(text):
        for each in listed.split(","):
            name = each.split()[0] if each.split() else ""
            if name and name.lower() not in own and not name.startswith("("):
                found[name] = None
    return tuple(found)


def without_secrets(url: str) -> str:
    """A URL without user, password and query.

    >>> without_secrets("https://me:secret@host/repo.git?x=1")
    'https://host/repo.git'
    """
    parts = urlsplit(url)
    if not parts.netloc:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


_SCHEMES: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}
_PORTS: Final = {"postgres": 5432, "mysql": 3306, "mssql": 1433, "oracle": 1521}
_SCHEMAS: Final = {"postgres": "public", "mssql": "dbo"}
_TABLE: Final = r'(?:[\w$.]|"[^"]*"|`[^`]*`)+'
_FROM: Final = re.compile(
    rf"\b(?:from|join)\s+({_TABLE}(?:\s+(?:as\s+)?(?!(?:join|where|on|group|order|left|right|inner|"
    rf"full|cross|union|limit|having)\b)\w+)?(?:\s*,\s*{_TABLE}(?:\s+(?:as\s+)?\w+)?)*)",
    re.IGNORECASE,
)
