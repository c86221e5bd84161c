"""What a command answers: text for people; with --json, one JSON document for programs; with
--quiet, nothing but errors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console

from pyrite.cli.errors import reporting_errors

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document to standard output, and no more.")
]

QuietOption = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print errors only: no progress, and no outcome."),
]


class Answer:
    """With --json, `give` prints the document. Otherwise text goes to `console`, which prints
    nothing with --json and --quiet."""

    def __init__(self, output: TextIO | None, *, is_quiet: bool = False) -> None:
        self._output = output
        self._is_given = False
        self.is_quiet = is_quiet
        self.console = Console(quiet=is_quiet or output is not None)

    @property
    def is_json(self) -> bool:
        return self._output is not None

    def give(self, document: Mapping[str, Any]) -> None:
        if self._output is not None and not self._is_given:
            self._is_given = True
            print(json.dumps(document), file=self._output, flush=True)


@contextmanager
def answering(as_json: bool, *, quiet: bool = False) -> Iterator[Answer]:
    """Reports errors as every command does. With --json, standard output gets the document alone:
    what the user's module prints when it is loaded goes to standard error. An error that leaves no
    document to give is a document too, with the key `error`."""
    with reporting_errors():
        if not as_json:
            yield Answer(None, is_quiet=quiet)
            return
        with _kept_for_the_document() as output:
            answer = Answer(output, is_quiet=quiet)
            try:
                yield answer
            except (Exception, KeyboardInterrupt) as error:
                if not isinstance(error, (typer.Exit, typer.Abort, typer.BadParameter)):
                    answer.give({"error": error_words(error)})
                raise


def error_words(error: BaseException) -> str:
    """What a document says of an error."""
    if isinstance(error, KeyboardInterrupt):
        return "cancelled"
    return str(error) or type(error).__name__


@contextmanager
def _kept_for_the_document() -> Iterator[TextIO]:
    """Standard output as it is now, while everything else that is written to it goes to standard
    error, from child processes too."""
    sys.stdout.flush()
    try:
        number = sys.stdout.fileno()
    except OSError:  # not a file, as in a test
        number = None
    if number is None:
        output = sys.stdout
        with redirect_stdout(sys.stderr):
            yield output
        return
    with os.fdopen(os.dup(number), "w") as output:
        os.dup2(sys.stderr.fileno(), number)
        try:
            yield output
        finally:
            sys.stdout.flush()
            os.dup2(output.fileno(), number)
