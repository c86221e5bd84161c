"""A journal on paper: a copy in memory of the journal of a store, to try what a run would do. It
needs no lock, and what is written to it changes nothing."""

from __future__ import annotations

import sqlite3

from pyrite.workload.storage.journal import JOURNAL_SCHEMA, Journal, check_format
from pyrite.workload.storage.journal_reading import reading
from pyrite.workload.storage.store import Store


class PaperJournal(Journal):
    def __init__(self, store: Store) -> None:
        self._store = store
        self._use(sqlite3.connect(":memory:", isolation_level=None))
        if store.exists:
            with reading(store.journal) as real:
                check_format(store, real)
                real.backup(self.database)
        self.database.executescript(JOURNAL_SCHEMA)
        self.catch_up()

    def drop_unused(self, *, but: int) -> None:
        """Removes nothing, because the files belong to the store."""
