"""What is where in the folder of an embedded instance."""

from __future__ import annotations

from pathlib import Path


def nodes_file(folder: Path) -> Path:
    return folder / "nodes.sqlite"


def queues_file(folder: Path) -> Path:
    return folder / "queues.sqlite"


def collections_file(folder: Path) -> Path:
    return folder / "collections.sqlite"
