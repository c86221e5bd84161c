"""Source files that are edited while a run is running: no result of other code may be kept as the
result of the planned code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pyrite.workload import JobState, Run, Workload
from tests.workload.conftest import states

ONE = "def f():\n    return 1\n"
TWO = "def f():\n    return 1 + 1\n"
WHY = "its source steps.py was changed after the run started"
KINDS: list[dict[str, Any]] = [{"kind": "persistent"}, {"kind": "transient"}]


@pytest.fixture
def edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """Writes a module, and imports it again."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)

    def write(text: str, name: str = "steps", *, is_imported: bool = True) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(text)
        if is_imported:
            for module in ("steps", name):
                sys.modules.pop(module, None)
            importlib.invalidate_caches()
        return importlib.import_module("steps") if is_imported else ModuleType("none")

    return write


@pytest.fixture
def gate(tmp_path: Path) -> Callable[[], None]:
    """A job `["cat", "gate"]` waits until this is called."""
    os.mkfifo(tmp_path / "gate")

    def open_it() -> None:
        (tmp_path / "gate").write_text("")

    return open_it


def behind_the_gate(command: Any, **options: Any) -> Workload:
    return Workload().add("gate", ["cat", "gate"]).add("job", command, after="gate", **options)


def run_of(workload: Workload, **options: Any) -> Run:
    return workload.run(store="night", workers=1, only=["job"], **options).wait()


@pytest.mark.parametrize("options", KINDS)
def test_code_that_is_edited_before_a_worker_loads_it_is_not_kept_as_the_old_code(
    edit: Callable[..., ModuleType], gate: Callable[[], None], options: dict[str, Any]
) -> None:
    workload = behind_the_gate(edit(ONE).f)
    run = workload.run(store="night", workers=1, **options)
    edit(TWO, is_imported=False)
    gate()
    assert run.wait().results["job"] == 2  # the worker imports what is there
    workload = behind_the_gate(edit(ONE).f)
    assert workload.plan("night", only=["job"]).why("job").endswith(WHY)
    assert run_of(workload, **options).results["job"] == 1
    assert states(run_of(workload, **options))["job"] is JobState.SKIPPED
