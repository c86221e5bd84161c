"""Schemas as Spark writes them: "word string, n long, tags array<string>"."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from pyrite.errors import InvalidDAG

_TYPES: dict[str, Callable[[], pa.DataType]] = {
    "boolean": pa.bool_,
    "tinyint": pa.int8,
    "byte": pa.int8,
    "smallint": pa.int16,
    "short": pa.int16,
    "int": pa.int32,
    "integer": pa.int32,
    "bigint": pa.int64,
    "long": pa.int64,
    "float": pa.float32,
    "real": pa.float32,
    "double": pa.float64,
    "string": pa.string,
    "binary": pa.binary,
    "date": pa.date32,
    "timestamp": lambda: pa.timestamp("us", "UTC"),
    "timestamp_ntz": lambda: pa.timestamp("us"),
}
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|\w+|[<>(),:])")


def schema_of(text: str) -> pa.Schema:
    """Raises InvalidDAG.

    >>> schema_of("word string not null, n long").names
    ['word', 'n']
    """
    parser = _Parser(text)
    fields = parser.fields(end="")
    return pa.schema(fields)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._token = ""
        self._next()

    def fields(self, end: str) -> list[pa.Field]:
        """Fields up to the token that ends them."""
        fields = [self._field()]
        while self._token == ",":
            self._next()
            fields.append(self._field())
        self._expect(end)
        return fields

    def _field(self) -> pa.Field:
        name = self._word("the name of a field")
        if self._token == ":":
            self._next()
        type, nullable = self._type(), True
        if self._token.lower() == "not":
            self._next()
            if self._token.lower() != "null":
                raise self._error("NULL after NOT")
            self._next()
            nullable = False
        return pa.field(name, type, nullable=nullable)

    def _type(self) -> pa.DataType:
        word = self._word("a type").lower()
        if word in _TYPES:
            return _TYPES[word]()
        if word in ("decimal", "numeric"):
            return self._decimal()
        if word == "array":
            self._expect("<")
            element = self._type()
            self._expect(">")
            return pa.list_(element)
        if word == "map":
            self._expect("<")
            key = self._type()
            self._expect(",")
            value = self._type()
            self._expect(">")
            return pa.map_(key, value)
        if word == "struct":
            self._expect("<")
            return pa.struct(self.fields(end=">"))
        known = ", ".join([*_TYPES, "decimal(p,s)", "array<>", "map<,>", "struct<>"])
        raise self._error(f"one of the types {known} instead of '{word}'")

    def _decimal(self) -> pa.DataType:
        numbers = [10, 0]
        if self._token == "(":
            self._next()
            numbers = [self._number()]
            if self._token == ",":
                self._next()
                numbers.append(self._number())
            self._expect(")")
        try:
            return pa.decimal128(*numbers)
        except ValueError as error:
            raise InvalidDAG(f"schema '{self._text}': {error}") from None

    def _number(self) -> int:
        if not self._token.isdigit():
            raise self._error("a number")
        number = int(self._token)
        self._next()
        return number

    def _word(self, what: str) -> str:
        token = self._token
        if not token or token in "<>(),:":
            raise self._error(what)
        self._next()
        return token[1:-1].replace("``", "`") if token.startswith("`") else token

    def _expect(self, token: str) -> None:
        if self._token != token:
            raise self._error(f"'{token}'" if token else "',' or the end")
        if token:
            self._next()

    def _next(self) -> None:
        if not self._text[self._position :].strip():
            self._token = ""
            return
        found = _TOKEN.match(self._text, self._position)
        if found is None:
            raise InvalidDAG(
                f"schema '{self._text}' cannot be read from position {self._position} on; put a "
                "name with other characters than letters, digits and _ between backquotes"
            )
        self._token, self._position = found.group(1), found.end()

    def _error(self, expected: str) -> InvalidDAG:
        found = f"'{self._token}'" if self._token else "the end"
        return InvalidDAG(f"schema '{self._text}' should have {expected}, and has {found}")
