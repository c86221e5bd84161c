"""The command `ui`, which serves the page that shows runs, workloads and durable jobs."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from pyrite.cli.durable import place_of
from pyrite.cli.errors import reporting_errors, say
from pyrite.errors import PyriteError

if TYPE_CHECKING:
    from pyrite.ui.server import UiServer
    from pyrite.ui.sources.sources import Sources

PORT: Final = 8470
"""If it is taken and none was asked for, any free one is used."""


def ui(
    runs: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="The folder in which runs are recorded. Default: that of PYRITE_RUNS, or the one "
            "of this user.",
            file_okay=False,
        ),
    ] = None,
    workload: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="STORE",
            help="The store of a workload. Those that commands have used are found by themselves. "
            "May be given several times.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    durable: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FOLDER_OR_URL",
            help="A folder with durable jobs, or zk://HOST:PORT,.../CLUSTER?nats=nats://HOST:PORT. "
            "May be given several times.",
        ),
    ] = None,
    durable_file: Annotated[
        list[Path] | None,
        typer.Option(help="A file with such a URL, if that has a secret.", dir_okay=False),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen. On any host but loopback, a token is needed.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(help=f"The port; 0 is any free one. Default: {PORT}.", min=0, max=65535),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="PYRITE_UI_TOKEN",
            help="Who knows it may see the page. Other users of this machine can read command "
            "lines, so rather set PYRITE_UI_TOKEN. Default: a new one, if the host needs one.",
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show runs, but do not let anyone cancel them.")
    ] = False,
    open: Annotated[
        bool, typer.Option("--open/--no-open", help="Whether to open the page in a browser.")
    ] = True,
) -> None:
    """Serve a page that shows runs, workloads and durable jobs, until Ctrl-C."""
    from pyrite.cluster.hosts.signals import EndingSignals
    from pyrite.ui.opening import sources_of

    console = Console()
    with reporting_errors(), EndingSignals() as signals:
        places = [place_of(place, None) for place in durable or ()]
        places += [place_of(None, file) for file in durable_file or ()]
        sources = sources_of(runs, workloads=workload or (), durable=places)
        with _served(sources, host, port, token=token, is_read_only=read_only) as server:
            for url in server.urls:
                console.print(f"the page is at {url}", soft_wrap=True, highlight=False)
            if open and _has_a_screen():
                webbrowser.open(server.url)
            say("press Ctrl-C to stop it")
            signals.wait()


def _served(
    sources: Sources, host: str, port: int | None, *, token: str | None, is_read_only: bool
) -> UiServer:
    from pyrite.ui.opening import serve

    options: dict[str, Any] = {"host": host, "token": token, "is_read_only": is_read_only}
    try:
        return serve(sources, port=PORT if port is None else port, **options)
    except PyriteError:
        if port is not None:
            raise
        return serve(sources, **options)


def _has_a_screen() -> bool:
    """Without one, a browser would be a program in this terminal."""
    names = ("DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform != "linux" or any(os.environ.get(name) for name in names)
