"""The scripts that `make` calls."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "scripts"
VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"


def find_python(version: str, *, path: Path, pyenv: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{path}:/usr/bin:/bin", "PYENV_ROOT": str(pyenv)}
    return subprocess.run(
        [SCRIPTS / "find-python", version], env=environment, capture_output=True, text=True
    )


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_python_on_path_is_found(tmp_path: Path) -> None:
    here = program(tmp_path / "bin" / f"python{VERSION}", f'exec {sys.executable} "$@"')
    found = find_python(VERSION, path=tmp_path / "bin", pyenv=tmp_path)
    assert found.stdout == f"{here}\n"


def test_a_shim_of_pyenv_that_fails_is_passed_over_for_the_version_behind_it(
    tmp_path: Path,
) -> None:
    program(tmp_path / "shims" / f"python{VERSION}", "exit 127")
    here = program(
        tmp_path / "versions" / f"{VERSION}.9" / "bin" / "python", f'exec {sys.executable} "$@"'
    )
    found = find_python(VERSION, path=tmp_path / "shims", pyenv=tmp_path)
    assert found.stdout == f"{here}\n"


def test_a_python_that_is_not_installed_is_not_found(tmp_path: Path) -> None:
    found = find_python("3.99", path=tmp_path, pyenv=tmp_path)
    assert (found.returncode, found.stdout) == (1, "")


def test_tests_on_no_version_at_all_are_a_failure() -> None:
    done = subprocess.run([SCRIPTS / "test-all", "3.99"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Python 3.99: not installed, so not tested" in done.stdout


def install_test_servers(path: Path) -> subprocess.CompletedProcess[str]:
    for name in ("dirname", "id", "ls"):
        found = shutil.which(name)
        assert found is not None
        program(path / name, f'exec {found} "$@"')
    return subprocess.run(
        ["/bin/sh", SCRIPTS / "install-test-servers"],
        env={"PATH": str(path), "POSTGRESQL_FOLDER": str(path)},
        capture_output=True,
        text=True,
    )


def test_servers_that_are_there_are_not_installed(tmp_path: Path) -> None:
    program(tmp_path / "redis-server", "exit 0")
    program(tmp_path / "15" / "bin" / "initdb", "exit 0")
    program(tmp_path / "chromium", "exit 0")
    done = install_test_servers(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_servers_that_cannot_be_installed_are_named(tmp_path: Path) -> None:
    done = install_test_servers(tmp_path)
    assert done.returncode == 1
    assert "apt-get install redis-server postgresql chromium" in done.stderr
