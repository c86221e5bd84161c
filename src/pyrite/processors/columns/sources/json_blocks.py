"""JSON lines as tables, by pyarrow. A line that does not fit is an error that names it."""

from __future__ import annotations

import codecs
import io
import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.json as pa_json

from pyrite.bad_records import BadRecord
from pyrite.functions import shorten_text
from pyrite.processors.files.bad_lines import Place
from pyrite.processors.files.decoding import UTF_8
from pyrite.processors.files.lines import Range, blocks_of_bytes
from pyrite.processors.files.packing import opened
from pyrite.processors.files.storage import Storage

BLOCK = 1 << 22
"""About how many bytes of a file become a table, and by how many the types are inferred."""
_BAD = (pa.ArrowInvalid, UnicodeDecodeError)
_NO_ROWS = pa.table({})
_OTHER_TYPE = re.compile(r"Column\(/.*\) changed|Failed to convert")
_ROW = re.compile(r" in row \d+$")


def inferred(storage: Storage, path: str, *, goes_on: bool) -> pa.Schema | None:
    """The fields of the objects, with types that fit the first ones; None if there are none."""
    found = tables_in(storage, Range(path), None, strict=False, goes_on=goes_on)
    first = next((each for each in found if not isinstance(each, BadRecord)), None)
    return None if first is None else first.schema


def tables_in(
    storage: Storage, part: Range, schema: pa.Schema | None, *, strict: bool, goes_on: bool
) -> Iterator[Any]:
    """The objects of the lines that begin in a part of a file, with the fields of a schema, or with
    all and inferred types. If it is strict, there may be no other fields. If it goes on, there is a
    BadRecord for each line that does not fit."""
    place = Place(storage, part, UTF_8)
    with opened(storage, part.path) as file:
        for at, block in blocks_of_bytes(file, part, BLOCK):
            rest = block if at else block.removeprefix(codecs.BOM_UTF8)
            while rest:
                bad, lines = None, rest
                try:
                    table = _parsed(rest, schema, strict)
                except _BAD:
                    lines, line, why = _up_to_bad(rest, schema, strict)
                    bad = place.bad_line(lines.count(b"\n"), line, why)
                    if not goes_on:
                        raise bad.error from None
                    table = _parsed(lines, schema, strict) if lines else _NO_ROWS
                if table.num_rows:
                    yield table
                place.passed(lines.count(b"\n"))
                rest = rest[len(lines) :]
                if bad is not None:
                    yield bad
                    place.passed(1)
                    rest = rest.partition(b"\n")[2]


def _parsed(lines: bytes, schema: pa.Schema | None, strict: bool) -> pa.Table:
    """Raises one of `_BAD`. Dates and times are strings: pyarrow takes only numbers for them."""
    others = "infer" if schema is None else "error" if strict else "ignore"
    lines.decode()  # pyarrow does not check that
    return pa_json.read_json(
        io.BytesIO(lines),
        read_options=pa_json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        parse_options=pa_json.ParseOptions(
            explicit_schema=None if schema is None else _with_strings(schema),
            unexpected_field_behavior=others,
        ),
    )


def _up_to_bad(block: bytes, schema: pa.Schema | None, strict: bool) -> tuple[bytes, str, str]:
    """The lines before the first one that cannot be parsed together with them, the text of that
    line, and why."""
    lines = [line + b"\n" for line in block.removesuffix(b"\n").split(b"\n")]

    def error(of: list[bytes]) -> Exception | None:
        try:
            _parsed(b"".join(of), schema, strict)
        except _BAD as error:
            return error
        return None

    count = bisect_left(range(1, len(lines) + 1), True, key=lambda n: error(lines[:n]) is not None)
    before, line = b"".join(lines[:count]), lines[count].decode(errors="replace").strip()
    why = error(lines[count : count + 1]) or error(lines[: count + 1])
    if isinstance(why, UnicodeDecodeError):
        return before, line, f"is not UTF-8 text: {shorten_text(line, 100)}"
    text = _ROW.sub("", str(why))
    if schema is not None and "unexpected field" in text:
        others = [name for name in json.loads(line) if name not in schema.names]
        field = f"a field '{others[0]}'" if others else "a field inside a field"
        advice = "choose fields with columns=[...], or give them all with schema="
        return before, line, f"has {field} that the first lines do not have; {advice}"
    advice = "; give a type that fits with schema=" if _OTHER_TYPE.search(text) else ""
    return before, line, f"does not fit: {text}: {shorten_text(line, 100)}{advice}"


def _with_strings(schema: pa.Schema) -> pa.Schema:
    def is_day_or_time(kind: pa.DataType) -> bool:
        return bool(pa.types.is_date(kind) or pa.types.is_time(kind))

    return pa.schema([f.with_type(pa.string()) if is_day_or_time(f.type) else f for f in schema])
