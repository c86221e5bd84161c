"""Text of files as bytes: which encodings there are, which of them can be read in parts, and where
a file is not the text that it should be."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from typing import IO, Any

from pyrite.errors import InvalidDAG, ProcessorError
from pyrite.functions import shorten

UTF_8 = "utf-8"
_BLOCK = 1 << 17


def checked_encoding(encoding: Any) -> str:
    """The encoding by its usual name. Raises InvalidDAG."""
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)
    except (LookupError, TypeError, UnicodeError):  # unknown, or from bytes to bytes
        raise InvalidDAG(
            "encoding of read_files() must be a text encoding that Python knows, such as 'utf-8' "
            f"or 'latin-1'; got {shorten(encoding)}"
        ) from None
    return UTF_8 if name == "utf-8-sig" else name  # a byte order mark is dropped anyway


def has_ascii_line_ends(encoding: str) -> bool:
    r"""Whether the byte \n is a line end wherever it is, so that a file can be cut there. It is so
    in all encodings that Python has, except those that write line ends as other bytes (UTF-16,
    EBCDIC)."""
    return "\r\n".encode(encoding) == b"\r\n"


def not_text(
    file: IO[bytes],
    path: str,
    encoding: str,
    advice: str = "give the encoding of the file with encoding=",
) -> ProcessorError:
    """The error for a file, open at its beginning, that is not text in this encoding: names the
    line and the byte that is the first one not to be."""
    name = "UTF-8" if encoding == UTF_8 else encoding
    line, position = 1, 0
    text = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), translate=True)
    for block in _blocks(file):
        state = text.getstate()
        try:
            line += text.decode(block, final=not block).count("\n")
            position += len(block)
            continue
        except UnicodeDecodeError:
            text.setstate(state)
        for byte in (block[at : at + 1] for at in range(max(len(block), 1))):
            try:
                line += text.decode(byte, final=not byte).count("\n")
                position += len(byte)
            except UnicodeDecodeError as error:
                start = position + len(byte) - len(error.object) + error.start
                return ProcessorError(
                    f"line {line} of '{path}' is not {name} text: byte {start} is "
                    f"0x{error.object[error.start]:02x} ({error.reason}); {advice}"
                )
    return ProcessorError(f"file '{path}' is not {name} text")


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """The blocks of a file, and an empty one at its end."""
    while block := file.read(_BLOCK):
        yield block
    yield b""
