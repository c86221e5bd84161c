"""The store of a run without `store=`: a temporary folder that belongs to this process. Nobody else
knows where it is, so it is removed when this process ends, and a run that is still running there is
cancelled."""

from __future__ import annotations

import atexit
import json
import os
import sys
import tempfile
import threading
import weakref
from secrets import token_hex

from pyrite.system.private import FOLDER_MODE
from pyrite.workload.storage.hook_files import wait_for_hooks
from pyrite.workload.storage.store import Store
from pyrite.workload.system import janitor, processes

_PREFIX = "pyrite-workload-"
HOOKS_SECONDS = 70.0  # they end themselves some time after the run


def temporary_store() -> Store:
    """The folder is registered before it is made, so that it does not stay after Ctrl-C."""
    store = Store(os.path.join(tempfile.gettempdir(), f"{_PREFIX}{token_hex(8)}"))
    _keeper_of_here().add(store)
    os.mkdir(store.folder, FOLDER_MODE)
    return store


def name_of(store: Store) -> str:
    """A name for what is run in a store: that of its folder, unless nobody has chosen it."""
    name = store.folder.name
    return "workload" if name.startswith(_PREFIX) else name


def remove_with(handle: object, store: Store) -> None:
    """Removes the store together with the handle of its run, if the run has ended by then."""
    weakref.finalize(handle, _remove_if_ended, _keeper_of_here(), store).atexit = False


def _remove_if_ended(keeper: _Keeper, store: Store) -> None:
    status = store.status()
    is_over = status is None or (status.has_ended and wait_for_hooks(store, 0))
    if keeper.is_of_here and is_over:
        keeper.remove(store)


class _Keeper:
    """Removes the temporary stores of this process when the interpreter ends. If the process is
    killed, the janitor does it."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._stores: dict[str, Store] = {}
        env = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        self._janitor = processes.Survivor(janitor.__file__, env=env)
        # Without this, a janitor that was killed would stay a zombie process.
        wait = self._janitor.process.wait
        threading.Thread(target=wait, name="workload janitor", daemon=True).start()
        # The masters in this process are registered later, so they have ended before.
        atexit.register(self._leave)

    @property
    def is_of_here(self) -> bool:
        return os.getpid() == self._owner

    def add(self, store: Store) -> None:
        self._stores[str(store)] = store
        self._janitor.tell(f"+{json.dumps(str(store))}")

    def remove(self, store: Store) -> None:
        janitor.remove(str(store))
        self._stores.pop(str(store), None)
        self._janitor.tell(f"-{json.dumps(str(store))}")

    def _leave(self) -> None:
        if self.is_of_here:
            for store in list(self._stores.values()):
                self._cancel(store)
                wait_for_hooks(store, HOOKS_SECONDS)
                self.remove(store)

    def _cancel(self, store: Store) -> None:
        status = store.status()
        if status is None or status.has_ended or not status.master.is_alive:
            return
        print(
            "pyrite: a run without store= was cancelled, because the program ended before the run; "
            "call wait(), or give a folder as store=",
            file=sys.stderr,
        )
        if status.master.pid != self._owner:
            janitor.end_master(str(store))


_keeper: _Keeper | None = None
_making = threading.Lock()


def _keeper_of_here() -> _Keeper:
    global _keeper
    with _making:
        if _keeper is None or not _keeper.is_of_here:
            _keeper = _Keeper()
        return _keeper
