"""Telemetry by variables of the environment: one warning for what cannot be started, and nothing is
left when the last instance is closed."""

from __future__ import annotations

import json
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

import pyrite
from pyrite import PyriteError, telemetry
from pyrite.watching import observers, workloads
from tests.telemetry.test_prometheus import chain

_VARIABLES = {
    "PYRITE_PROMETHEUS": ("1234", "prometheus_client", "prometheus-client"),
    "PYRITE_PUSHGATEWAY": ("http://127.0.0.1:1", "prometheus_client", "prometheus-client"),
    "OTEL_TRACES_EXPORTER": ("otlp", "opentelemetry", "opentelemetry-sdk"),
    "OPENLINEAGE_URL": ("http://127.0.0.1:1", "openlineage", "openlineage-python"),
}


@pytest.mark.parametrize("name", _VARIABLES)
def test_a_missing_library_is_one_warning_that_names_the_extra(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    value, module, package = _VARIABLES[name]
    _without(monkeypatch, module)
    monkeypatch.setenv(name, value)
    with pyrite.instance() as instance:
        instance.new_light_job(chain("missing")).execute().result(10)
    (record,) = caplog.records
    assert f"needs {package}, which is not installed" in record.getMessage()
    assert "pip install 'pyrite[metrics]'" in record.getMessage()


@pytest.mark.parametrize("start", [telemetry.traces, telemetry.lineage, telemetry.prometheus])
def test_a_missing_library_is_an_error_of_who_asks_for_it(
    start: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _, module, _ in _VARIABLES.values():
        _without(monkeypatch, module)
    with pytest.raises(PyriteError, match=r"pip install 'pyrite\[metrics\]'"):
        start()  # type: ignore[operator]


def _without(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    find = PathFinder.find_spec
    monkeypatch.setattr(
        PathFinder,
        "find_spec",
        lambda name, *rest: None if name.partition(".")[0] == library else find(name, *rest),
    )
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)


def test_nobody_observes_when_the_last_instance_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(tmp_path / "events"))
    before = observers._observers, workloads._observers
    first, second = pyrite.instance(), pyrite.instance()
    first.close()
    assert (observers._observers, workloads._observers) != before
    second.close()
    assert (observers._observers, workloads._observers) == before


def test_a_forked_child_tells_of_its_own_runs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events"
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(path))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    with pyrite.instance() as pyr:
        pyr.new_light_job(chain("parent")).execute().result(10)
        child = os.fork()
        if not child:
            with pyrite.instance() as inner:
                inner.new_light_job(chain("child")).execute().result(10)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    told = [json.loads(line)["job"]["name"].split("-")[0] for line in path.read_text().splitlines()]
    assert sorted(told) == ["child", "child", "parent", "parent"]
