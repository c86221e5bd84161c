"""The public names: all are there, and processes that need none of them do not import them."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest

import pyrite
import pyrite.workload


@pytest.mark.parametrize("module", ["workers.worker", "masters.master"])
def test_a_worker_and_a_master_start_without_processors_and_engine(module: str) -> None:
    code = f"import sys, pyrite.workload.{module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert f"pyrite.workload.{module}" in loaded
    assert not {"pyrite.names", "pyrite.processors", "pyrite.engine"} & set(loaded)


@pytest.mark.parametrize("package", [pyrite, pyrite.workload])
def test_no_public_name_can_be_replaced_by_a_module(package: object) -> None:
    name = package.__name__  # type: ignore[attr-defined]
    for public in pyrite.__all__ if package is pyrite else pyrite.workload.__all__:
        if not public.startswith("__") and find_spec(f"{name}.{public}") is not None:
            assert getattr(package, public) is sys.modules[f"{name}.{public}"]


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'pyrite' has no attribute 'dagg'"):
        pyrite.dagg  # type: ignore[attr-defined]  # noqa: B018
    assert {"DAG", "instance", "processors", "testing"} <= set(dir(pyrite))


def test_an_instance_loads_no_library_of_telemetry() -> None:
    code = "import sys, pyrite; pyrite.instance().close(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "pyrite" in loaded
    assert not {"prometheus_client", "opentelemetry", "openlineage"} & loaded
