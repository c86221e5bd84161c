"""The text of a query: where it ends, and which parameters it has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import TextClause, bindparam, text
from sqlalchemy.types import NullType

_QUERY = re.compile(r"\s*((select|with|values|table)(?![\w.$])\s*\S|\(|--|/\*)", re.IGNORECASE)
_TOKEN = re.compile(
    r"""(?P<nothing>\s+|;|--[^\n]*|/\*.*?\*/)"""
    r"""|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\$(\w*)\$.*?\$\2\$|\w+|.""",
    re.DOTALL,
)
_LISTS = (list, tuple, set, frozenset)


def is_query(what: str) -> bool:
    """Whether it is a query, and not the name of a table.

    >>> is_query("select * from orders"), is_query("orders"), is_query("selected items")
    (True, False, False)
    """
    return _QUERY.match(what) is not None


def bound(
    query: str, parameters: Mapping[str, Any], dialect: str
) -> tuple[TextClause, dict[str, Any]]:
    """The query, and the values for its parameters. It can be put in parentheses: it does not end
    with a comment. After IN, a list stands for all of its values."""
    query = without_end(query)
    values = dict(parameters)
    lists = []
    for name, value in parameters.items():
        if not isinstance(value, _LISTS):
            continue
        mark = f":{re.escape(name)}"
        after_in = rf"(\bnot\s+)?\bin\s*(?:\(\s*{mark}\s*\)|{mark}\b)"
        if not value and dialect == "postgresql":  # where an empty list after IN needs a type
            query = re.sub(after_in, _in_nothing, query, flags=re.IGNORECASE)
            continue
        query, count = re.subn(after_in, rf"\1IN :{name}", query, flags=re.IGNORECASE)
        if count:
            values[name] = list(value)
            lists.append(bindparam(name, expanding=True, type_=NullType()))
    return text(query).bindparams(*lists), values


def _in_nothing(found: re.Match[str]) -> str:
    return "<> ALL('{}')" if found[1] else "= ANY('{}')"


def without_value(query: str, names: Iterable[str]) -> list[str]:
    """The parameters of a query that are not among these names."""
    return sorted(set(text(without_end(query)).compile().params) - set(names))


def without_end(query: str) -> str:
    """Without the comments and semicolons at its end.

    >>> without_end("select ';--' from orders; -- all of them")
    "select ';--' from orders"
    """
    if "\\" in query:  # in some databases it changes where a literal ends
        return query.strip().rstrip(";") + "\n"
    ends = (each.end() for each in _TOKEN.finditer(query) if each["nothing"] is None)
    return query[: max(ends, default=0)]
