"""Opens the page: for an instance, and for commands."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pyrite.closing import Closing
from pyrite.errors import PyriteError
from pyrite.functions import shorten
from pyrite.ui.sources.sources import Sources
from pyrite.watching.journal import runs_folder
from pyrite.watching.journal.known import KnownKind
from pyrite.watching.recorders import Recording, open_recorder
from pyrite.watching.recording import Recorder

if TYPE_CHECKING:
    from pyrite.ui.server import UiServer


class Page(Closing):
    """The page of this process: it records the runs of the process and serves them."""

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, token: str | None = None) -> None:
        self._recording: Recording = open_recorder()
        recorder = self._recording.recorder
        try:
            sources = sources_of(recorder.folder, recorder=recorder)
            self._server = serve(sources, host=host, port=port, token=token)
        except BaseException:
            self._recording.close()
            raise
        self.url = self._server.url

    def remember(self, kind: KnownKind, place: str | None) -> None:
        self._recording.remember(kind, place)

    def close(self) -> None:
        """The server first: it sends how the runs have ended to those who look."""
        self._server.close()
        self._recording.close()


def page_at(ui: object) -> Page:
    """The page for `pyrite.instance(ui=True)` or `ui="host:port"`."""
    host, port = _address(ui)
    return Page(host=host, port=port)


def sources_of(
    folder: Path | None = None,
    *,
    recorder: Recorder | None = None,
    workloads: Sequence[Path] = (),
    durable: Sequence[str] = (),
) -> Sources:
    """What a page shows; see Sources. The default folder is that of PYRITE_RUNS, or one in the
    user's home."""
    return Sources(
        (folder or runs_folder()).absolute(),
        recorder=recorder,
        workloads=[each.absolute() for each in workloads],
        durable=durable,
    )


def _address(ui: object) -> tuple[str, int]:
    """
    >>> _address(True), _address("localhost:8080"), _address("[::1]:80")
    (('127.0.0.1', 0), ('localhost', 8080), ('::1', 80))
    """
    if ui is True:
        return "127.0.0.1", 0
    host, colon, port = ui.rpartition(":") if isinstance(ui, str) else ("", "", "")
    if not (host and colon and port.isascii() and port.isdigit() and int(port) < 65536):
        raise PyriteError(f"ui= is True, or 'HOST:PORT' with a port up to 65535; got {shorten(ui)}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def serve(
    sources: Sources,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    token: str | None = None,
    is_read_only: bool = False,
) -> UiServer:
    """Serves the page on a thread, until the server is closed."""
    check_installed()
    from pyrite.ui.server import UiServer

    return UiServer(sources, host=host, port=port, token=token, is_read_only=is_read_only)


def check_installed() -> None:
    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise PyriteError(
                f"the page needs the package {name}, which is not installed; install it with: "
                "pip install 'pyrite[ui]'"
            )
