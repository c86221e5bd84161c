"""What the tests of files share: small jobs, and a look into a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pyrite import DAG, Instance, between
from pyrite import processors as p

ROWS = [{"name": f"näme {n}", "size": n} for n in range(3000)]
ITEMS: dict[str, list[Any]] = {
    "text": ["ä line", "", "  spaces  ", *map(str, range(3000))],
    "csv": [{"name": row["name"], "size": str(row["size"])} for row in ROWS]
    + [{"name": 'quo"te,\nnew line', "size": ""}],
    "jsonl": [*ROWS, [1, None], "text", 3.5, {"line": "a\nb"}],
    "json": ROWS,
    "parquet": ROWS,
}


def copying(source: Any, sink: Any, *, parallelism: int = 1, readers: int = 1) -> DAG:
    dag = DAG()
    read = dag.vertex("read", source, local_parallelism=readers)
    write = dag.vertex("write", sink, local_parallelism=parallelism)
    return dag.edge(between(read, write))


def copy(pyr: Instance, source: Any, sink: Any, *, parallelism: int = 1, readers: int = 1) -> None:
    dag = copying(source, sink, parallelism=parallelism, readers=readers)
    pyr.new_light_job(dag).execute().result(20)


def read_back(pyr: Instance, pattern: Path | str, format: str) -> list[Any]:
    pyr.list("back").clear()
    copy(pyr, p.read_files(pattern, format=format), p.write_list("back"))
    return list(pyr.list("back"))


def visible(folder: Path) -> list[str]:
    """What is in a folder, without what is hidden."""
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


def contents(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in visible(folder)}
