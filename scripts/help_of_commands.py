"""Turns the block ```pyrite-help of the documentation into the help of all commands, so that the
reference of the command line is always that of the code. A formatter for fenced blocks; mkdocs.yml
names it."""

from __future__ import annotations

from html import escape
from typing import Any

import click
import typer

from pyrite.cli import app


def formatted(*_: Any, **__: Any) -> str:
    """The HTML of the block: a list of all commands, and the help of each."""
    names = commands()
    items = [f'<li><a href="#{_anchor(name)}">pyrite {name}</a></li>' for name in names]
    parts = [
        f'<h2 id="{_anchor(name)}">pyrite {name}</h2>\n{help_of(name.split())}' for name in names
    ]
    return "\n".join(["<ul>", *items, "</ul>", *parts])


def help_of(name: list[str]) -> str:
    """What a command does, how it is called, and a table of its arguments and options."""
    command, context = _found(name)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [f"<p>{escape(_one_line(command.help or ''))}</p>", _code(usage)]
    rows = [_row(found, context) for found in command.params if not getattr(found, "hidden", False)]
    if rows:
        lines += ["<table><tbody>", *rows, "</tbody></table>"]
    return "\n".join(lines)


def commands(command: click.Command | None = None, path: tuple[str, ...] = ()) -> list[str]:
    """The names of all commands, such as "workload run"."""
    command = command or typer.main.get_command(app)
    if not isinstance(command, click.Group):
        return [" ".join(path)]
    own = [" ".join(path)] if path and command.invoke_without_command else []
    below = [commands(found, (*path, name)) for name, found in command.commands.items()]
    return own + [name for names in below for name in names]


def _found(name: list[str]) -> tuple[click.Command, click.Context]:
    command = typer.main.get_command(app)
    context = click.Context(command, info_name="pyrite")
    for word in name:
        assert isinstance(command, click.Group)
        command = command.commands[word]
        context = click.Context(command, parent=context, info_name=word)
    return command, context


def _anchor(name: str) -> str:
    return f"pyrite-{name.replace(' ', '-')}"


def _row(parameter: click.Parameter, context: click.Context) -> str:
    if isinstance(parameter, click.Option):
        names, text = ", ".join([*parameter.opts, *parameter.secondary_opts]), parameter.help or ""
    else:
        names, text = parameter.make_metavar(context), getattr(parameter, "help", None) or ""
    return f"<tr><td><code>{escape(names)}</code></td><td>{escape(_one_line(text))}</td></tr>"


def _code(text: str) -> str:
    return f'<div class="highlight"><pre><code>{escape(text)}</code></pre></div>'


def _one_line(text: str) -> str:
    return " ".join(text.replace("\b", "").split())
