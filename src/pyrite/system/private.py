"""Files and folders that only their owner can read, whatever the umask is. A store holds arguments,
results and output of jobs, which may be confidential."""

from __future__ import annotations

import os
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700


def open_private(path: str | os.PathLike[str], flags: int) -> int:
    """Opens a file; creates it if it is missing. Also serves as the `opener` of open()."""
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)


def write_private(path: Path, data: bytes | bytearray | memoryview) -> None:
    with open(path, "wb", opener=open_private) as file:
        file.write(data)


def make_private_folder(path: Path) -> None:
    """Makes the folder, unless it exists. Others lose the right to read it, if it had that."""
    path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    if path.stat().st_mode & 0o777 != FOLDER_MODE:
        try:
            path.chmod(FOLDER_MODE)
        except PermissionError:  # another user made it
            pass
