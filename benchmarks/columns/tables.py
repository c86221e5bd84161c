"""The tables of TPC-H as Parquet files, with doubles in place of decimals. `tpchgen-cli` makes them
once for each scale factor. They stay in the folder `.benchmarks`, because they are always the same.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.peers import ROOT
from benchmarks.ratios import CannotRun

TABLES = ("customer", "orders", "lineitem")
ROWS_PER_GROUP = 1_000_000


def tables(scale: float) -> Path:
    """The folder of the tables. Each table is a sub-folder with one file."""
    folder = ROOT / ".benchmarks" / f"tpch-{scale:g}"
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            write_tables(Path(made, "tables"), scale)
            # All or nothing: a run that is stopped leaves no half of the tables behind.
            Path(made, "tables").rename(folder)
    return folder


def write_tables(folder: Path, scale: float) -> None:
    with tempfile.TemporaryDirectory() as raw:
        names = ",".join(TABLES)
        options = ["--scale-factor", f"{scale:g}", "--output-dir", raw, "--tables", names]
        subprocess.run([_generator(), "parquet", *options, "--quiet"], check=True)
        for name in TABLES:
            (folder / name).mkdir(parents=True)
            table = plain(pq.read_table(f"{raw}/{name}.parquet"))
            pq.write_table(table, folder / name / f"{name}.parquet", row_group_size=ROWS_PER_GROUP)


def plain(table: pa.Table) -> pa.Table:
    """The table with doubles in place of decimals."""
    fields = [(field.name, _plain(field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return pa.float64()
    return pa.string() if kind == pa.string_view() else kind


def _generator() -> str:
    own = ROOT / ".venv-bench" / "bin" / "tpchgen-cli"
    found = str(own) if own.exists() else shutil.which("tpchgen-cli")
    if found is None:
        raise CannotRun("tpchgen-cli is not installed (`make bench` installs it in .venv-bench)")
    return found
