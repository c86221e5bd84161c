"""The tasks of a job find its modules, wheels and files; tasks of other jobs do not."""

from __future__ import annotations

import importlib.util
import sys
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pyrite import DAG, AbstractProcessor, Instance, JobConfig, JobFailed, PyriteError, between
from pyrite import processors as p


@pytest.fixture
def module(tmp_path: Path) -> Any:
    """A module that is loaded in this process and whose folder is not on `sys.path`."""
    source = tmp_path / "deployed_functions.py"
    source.write_text("def double(n):\n    return 2 * n\n")
    spec = importlib.util.spec_from_file_location("deployed_functions", source)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules["deployed_functions"] = made
    spec.loader.exec_module(made)
    yield made
    del sys.modules["deployed_functions"]


def doubling(module: ModuleType) -> DAG:
    dag = DAG()
    source, double = (
        dag.vertex("source", p.read_items([1, 2])),
        dag.vertex("double", p.map(module.double)),
    )
    return dag.edge(between(source, double)).edge(
        between(double, dag.vertex("sink", p.write_list("out")))
    )


def test_a_module_travels_with_its_job_alone(pyr: Instance, module: ModuleType) -> None:
    for modules in ([module], [Path(str(module.__file__))], [str(module.__file__)]):
        pyr.list("out").clear()
        pyr.new_job(doubling(module), JobConfig(modules=modules)).execute().result(60)
        assert sorted(pyr.list("out")) == [2, 4]
    with pytest.raises(JobFailed, match="No module named 'deployed_functions'"):
        pyr.new_job(doubling(module)).execute().result(60)


def test_packages_and_wheels_travel(pyr: Instance, tmp_path: Path) -> None:
    package = tmp_path / "deployed_package"
    package.mkdir()
    (package / "__init__.py").write_text("from deployed_package.part import number\n")
    (package / "part.py").write_text("number = 7\n")
    with zipfile.ZipFile(tmp_path / "deployed-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("deployed_wheel.py", "number = 35\n")

    def add(n: int) -> int:
        import deployed_package  # type: ignore[import-not-found]
        import deployed_wheel  # type: ignore[import-not-found]

        return n + int(deployed_package.number) + int(deployed_wheel.number)

    dag = DAG()
    source, added = dag.vertex("source", p.read_items([0])), dag.vertex("added", p.map(add))
    dag.edge(between(source, added)).edge(between(added, dag.vertex("sink", p.write_list("out"))))
    config = JobConfig(modules=[package], wheels=[tmp_path / "deployed-1.0-py3-none-any.whl"])
    pyr.new_job(dag, config).execute().result(60)
    assert list(pyr.list("out")) == [42]


class ReadsFile(AbstractProcessor):
    def init(self, context: Any) -> None:
        self.text = context.file("words.txt").read_text()

    def complete(self) -> None:
        self.emit(self.text)


def test_files_are_found_by_their_name(pyr: Instance, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("deployed")
    dag = DAG()
    dag.edge(between(dag.vertex("reads", ReadsFile), dag.vertex("sink", p.write_list("out"))))
    pyr.new_job(dag, JobConfig(files=[tmp_path / "words.txt"], members=1)).execute().result(60)
    assert list(pyr.list("out")) == ["deployed"]
    with pytest.raises(
        JobFailed, match=r"asks for the file 'words.txt', which did not come with the job"
    ):
        pyr.new_job(dag).execute().result(60)


@pytest.mark.parametrize(
    "config",
    [
        JobConfig(modules=["no_such_module_anywhere"]),
        JobConfig(modules=["no/such.py"]),
        JobConfig(files=["no/such/file"]),
    ],
)
def test_what_cannot_be_found_is_named_before_anything_starts(
    pyr: Instance, config: JobConfig
) -> None:
    dag = DAG()
    dag.vertex("source", p.read_items([1]))
    with pytest.raises(PyriteError, match=r"no.such"):
        pyr.new_job(dag, config).execute()
