"""Code deployment: the modules, packages, wheels and files that travel with one job, and that only
this job sees.

On the driver they are read into memory; each worker unpacks them into a folder of its own while a
task of the job runs.
"""

from __future__ import annotations

import importlib.util
import io
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from pyrite.errors import PyriteError
from pyrite.functions import shorten
from pyrite.job import JobConfig


@dataclass(frozen=True, slots=True)
class Deployment:
    """What a job brings along: archives of code to be put on the path, and files by name."""

    code: tuple[bytes, ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()

    @staticmethod
    def of(config: JobConfig) -> Deployment:
        """Reads what a config names. Raises, with the name, what cannot be found."""
        code = [_zipped(_source_of(module)) for module in config.modules]
        code += [_read(wheel, "wheel") for wheel in config.wheels]
        return Deployment(
            tuple(code), tuple((Path(file).name, _read(file, "file")) for file in config.files)
        )

    @contextmanager
    def unpacked(self) -> Iterator[Path | None]:
        """Makes the code importable while the block runs. Gives the folder with the files, if there
        are any."""
        if not self.code and not self.files:
            yield None
            return
        folder = Path(tempfile.mkdtemp(prefix="pyrite-job-"))
        try:
            for archive in self.code:
                zipfile.ZipFile(io.BytesIO(archive)).extractall(folder / "code")
            for name, content in self.files:
                (folder / "files").mkdir(exist_ok=True)
                (folder / "files" / name).write_bytes(content)
            sys.path.insert(0, str(folder / "code"))
            importlib.invalidate_caches()
            yield folder / "files"
        finally:
            _forget(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _forget(folder: Path) -> None:
    """A worker goes on to other jobs, which must not find the modules of this one."""
    sys.path[:] = [entry for entry in sys.path if entry != str(folder / "code")]
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


def _source_of(module: str | Path | ModuleType) -> Path:
    """The file of a module, or the folder of a package."""
    if isinstance(module, ModuleType):
        origin = module.__file__
    elif isinstance(module, Path) or module.endswith(".py") or "/" in module:
        path = Path(module)
        if not path.exists():
            raise PyriteError(
                f"the job's config names the module '{path}', and there is no such file or folder"
            )
        return path
    else:
        spec = importlib.util.find_spec(module)
        origin = spec.origin if spec is not None else None
    if origin is None:
        raise PyriteError(
            f"the job's config names the module {shorten(module)}, and no source of it can be found"
        )
    return Path(origin).parent if Path(origin).name == "__init__.py" else Path(origin)


def _zipped(source: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        if source.is_file():
            archive.write(source, source.name)
        for path in sorted(source.rglob("*")) if source.is_dir() else ():
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, Path(source.name) / path.relative_to(source))
    return packed.getvalue()


def _read(path: str | Path, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise PyriteError(
            f"the job's config names the {what} '{path}', which cannot be read: {error}"
        ) from error
