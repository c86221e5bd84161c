"""Databases as sources and sinks, through SQLAlchemy.

Nothing here imports SQLAlchemy before it is used: it is an extra, and takes long to import.
`reading.py` and `writing.py` describe the steps, `ranges.py` divides a key, `selecting.py` has the
queries. `databases.py` connects. `tables.py` and `kinds.py` know tables and types, `rows.py` writes
rows to `staging.py`, where they are until the job completes; `committing.py` and `moving.py` move
them to their table, in one of the `transactions.py`. `faults.py` explains errors.
"""

from pyrite.processors.sql.reading import ReadSql, read_sql
from pyrite.processors.sql.writing import WriteSql, write_sql

__all__ = ["ReadSql", "WriteSql", "read_sql", "write_sql"]
