"""The reference of the command line as HTML, for the documentation: the block ```pyrite-help of a
page becomes the help of all commands, so that it is always that of the code. A formatter for fenced
blocks; mkdocs.yml names it."""

from __future__ import annotations

from html import escape
from typing import Any

import typer

from pyrite.cli.app import app


def formatted(*_: Any, **__: Any) -> str:
    """The HTML of the block: a table of all commands, and the help of each."""
    names = commands()
    rows = [
        f'<tr><td><a href="#{_anchor(name)}">pyrite {name}</a></td><td>{_first(name)}</td></tr>'
        for name in names
    ]
    parts = [
        f'<h2 id="{_anchor(name)}">pyrite {name}</h2>\n{help_of(name.split())}' for name in names
    ]
    return "\n".join(["<table><tbody>", *rows, "</tbody></table>", *parts])


def help_of(name: list[str]) -> str:
    """What a command does, how it is called, and a table of its arguments and options."""
    command = _found(name)
    shown = [found for found in command.params if not getattr(found, "hidden", False)]
    words = ["pyrite", *name, *(_written(found) for found in shown if not _is_option(found))]
    usage = " ".join([*words, "[OPTIONS]"] if any(map(_is_option, shown)) else words)
    lines = [f"<p>{escape(_one_line(command.help or ''))}</p>", _code(usage)]
    if shown:
        lines += ["<table><tbody>", *map(_row, shown), "</tbody></table>"]
    return "\n".join(lines)


def commands(command: Any = None, path: tuple[str, ...] = ()) -> list[str]:
    """The names of all commands, such as "workload run"."""
    command = command or typer.main.get_command(app)
    below = _below(command)
    names = [" ".join(path)] if not below or (path and command.invoke_without_command) else []
    for name, found in below.items():
        names += commands(found, (*path, name))
    return names


def _found(name: list[str]) -> Any:
    command: Any = typer.main.get_command(app)
    for word in name:
        command = _below(command)[word]
    return command


def _first(name: str) -> str:
    """The first sentence of the help of a command."""
    text = _one_line(_found(name.split()).help or "")
    return escape(text.partition(". ")[0].rstrip("."))


def _below(command: Any) -> dict[str, Any]:
    return getattr(command, "commands", {})


def _is_option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option")


def _written(parameter: Any) -> str:
    """How a parameter is written: its options, or the name of the argument."""
    if _is_option(parameter):
        return ", ".join([*parameter.opts, *parameter.secondary_opts])
    return str(parameter.metavar or parameter.human_readable_name)


def _anchor(name: str) -> str:
    return f"pyrite-{name.replace(' ', '-')}"


def _row(parameter: Any) -> str:
    text = _one_line(getattr(parameter, "help", None) or "")
    written = f"<code>{escape(_written(parameter))}</code>"
    return f"<tr><td>{written}</td><td>{escape(text)}</td></tr>"


def _code(text: str) -> str:
    return f'<div class="highlight"><pre><code>{escape(text)}</code></pre></div>'


def _one_line(text: str) -> str:
    return " ".join(text.replace("\b", "").split())
