"""The types of fields that are text: CSV columns, and what is in the names of folders. A schema as
users give it, and how the text becomes a value of its type."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Union, get_args, get_origin

from pyrite.errors import InvalidDAG, ProcessorError
from pyrite.functions import shorten
from pyrite.processors.files.partitions import fields_of


@dataclass(frozen=True, slots=True)
class Column:
    """A field of a schema. Plain data: it travels with the format."""

    name: str
    type: type
    may_be_empty: bool = False
    """Whether an empty field is None."""

    @property
    def is_text(self) -> bool:
        """Whether the text of a field is its value."""
        return self.type is str and not self.may_be_empty

    def values(self, texts: Sequence[str]) -> Sequence[Any]:
        """The values of some fields. Raises DoesNotFit."""
        if self.is_text:
            return texts
        parse = _PARSERS[self.type]
        try:
            if self.may_be_empty:
                return [parse(text) if text else None for text in texts]
            return list(map(parse, texts))
        except _UNFIT:
            for index, text in enumerate(texts):
                try:
                    if text or not self.may_be_empty:
                        parse(text)
                except _UNFIT:
                    raise DoesNotFit(index, self._problem(text)) from None
            raise

    def in_folder(self, text: str | None, path: str) -> Any:
        """The value that is in the name of a file's folder."""
        try:
            return self.values([text or ""])[0]
        except DoesNotFit as error:
            raise ProcessorError(f"the folder of '{path}': {error}") from None

    def _problem(self, text: str) -> str:
        name, article = self.type.__name__, "an" if self.type is int else "a"
        if not text:
            return (
                f"column '{self.name}' is empty, which is not {article} {name}; give its type as "
                f"{name} | None if it may be empty"
            )
        return f"column '{self.name}' has {shorten(text)}, which is not {article} {name}"


class DoesNotFit(Exception):
    """Says what is wrong with a field, and which of the fields it is."""

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index


def folder_fields(path: str, schema: Sequence[Column]) -> dict[str, Any]:
    """The fields that are in the names of a file's folders, with the types of a schema, or as
    strings."""
    fields: dict[str, Any] = fields_of(path)
    for column in schema:
        if column.name not in fields:
            raise ProcessorError(
                f"file '{path}' is in no folder '{column.name}=...', and schema of read_files() "
                "can only name such fields, except for csv files; leave the field out"
            )
        fields[column.name] = column.in_folder(fields[column.name], path)
    return fields


def checked_read_schema(schema: Any) -> tuple[Column, ...]:
    """Raises InvalidDAG."""
    if not isinstance(schema, Mapping) or not schema:
        raise InvalidDAG(
            "schema of read_files() must be a dict of column names and their types, such as "
            f"{{'id': int, 'name': str | None}}; got {shorten(schema)}"
        )
    return tuple(_column(name, given) for name, given in schema.items())


def _column(name: Any, given: Any) -> Column:
    if not isinstance(name, str):
        raise InvalidDAG(
            f"the names in schema of read_files() must be strings; got {shorten(name)}"
        )
    found, may_be_empty = given, False
    if get_origin(given) in (Union, types.UnionType) and type(None) in get_args(given):
        others = [each for each in get_args(given) if each is not type(None)]
        found, may_be_empty = others[0] if len(others) == 1 else given, True
    if not isinstance(found, type) or found not in _PARSERS:
        *most, last = (known.__name__ for known in _PARSERS)
        raise InvalidDAG(
            f"schema of read_files() gives column '{name}' the type {_named(given)}, but a "
            f"column can be {', '.join(most)} or {last}, or one of these | None"
        )
    return Column(name, found, may_be_empty)


def _named(given: Any) -> str:
    return given.__name__ if isinstance(given, type) else shorten(given)


def _int(text: str) -> int:
    return int(_plain(text))


def _float(text: str) -> float:
    return float(_plain(text))


def _decimal(text: str) -> Decimal:
    return Decimal(_plain(text))


def _plain(text: str) -> str:
    """Python reads 1_000 as a number, and no other program does."""
    if "_" in text:
        raise ValueError("an underscore in a number")
    return text


def _bool(text: str) -> bool:
    return _BOOLS[text.strip().lower()]


def _date(text: str) -> date:
    return date.fromisoformat(text.strip())


def _datetime(text: str) -> datetime:
    return datetime.fromisoformat(text.strip())


_BOOLS = {"true": True, "false": False, "1": True, "0": False}
_PARSERS: dict[type, Callable[[str], Any]] = {
    int: _int,
    float: _float,
    bool: _bool,
    str: str,
    date: _date,
    datetime: _datetime,
    Decimal: _decimal,
}
_UNFIT = (ValueError, KeyError, ArithmeticError)
