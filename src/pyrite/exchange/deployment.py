"""Code deployment: sends modules, packages, wheels and files to the workers with a job. Other jobs
do not see them.

The driver reads them into memory. Each worker unpacks them into a temporary folder while a task of
the job runs.
"""

from __future__ import annotations

import importlib.util
import io
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from pyrite.errors import PyriteError
from pyrite.exchange.temporary import job_folder
from pyrite.functions import shorten
from pyrite.job import JobConfig


@dataclass(frozen=True, slots=True)
class Deployment:
    """The code and files of a job: zip archives for `sys.path`, and files by name."""

    code: tuple[bytes, ...] = ()
    files: tuple[tuple[str, bytes], ...] = ()

    @staticmethod
    def of(config: JobConfig) -> Deployment:
        """Reads the modules, wheels and files of a config. Raises PyriteError if one cannot be
        found."""
        code = [_zipped(_source_of(module)) for module in config.modules]
        code += [_read(wheel, "wheel") for wheel in config.wheels]
        return Deployment(
            tuple(code), tuple((Path(file).name, _read(file, "file")) for file in config.files)
        )

    @contextmanager
    def unpacked(self) -> Iterator[Path | None]:
        """Makes the code importable inside the `with` block. Yields the folder with the files, or
        None if the job has neither code nor files."""
        if not self.code and not self.files:
            yield None
            return
        with job_folder() as folder:
            for archive in self.code:
                zipfile.ZipFile(io.BytesIO(archive)).extractall(folder / "code")
            for name, content in self.files:
                (folder / "files").mkdir(exist_ok=True)
                (folder / "files" / name).write_bytes(content)
            sys.path.insert(0, str(folder / "code"))
            importlib.invalidate_caches()
            try:
                yield folder / "files"
            finally:
                _forget(folder)


def _forget(folder: Path) -> None:
    """Removes the modules of this job. The worker process runs other jobs afterwards, and these
    must not import them."""
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
                f"the job's config has the module '{path}', but this file or folder does not exist"
            )
        return path
    else:
        spec = importlib.util.find_spec(module)
        origin = spec.origin if spec is not None else None
    if origin is None:
        raise PyriteError(
            f"the job's config has the module {shorten(module)}, but its source file cannot be "
            "found; check the name, or give the path of the .py file or of the package"
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
            f"the job's config has the {what} '{path}', but it cannot be read: {error}"
        ) from error
