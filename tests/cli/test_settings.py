"""`--set` fills the arguments of the function that makes a pipeline."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyrite.cli.app import app
from pyrite.cli.settings import with_settings
from pyrite.errors import PyriteError

FLOW = """
from pyrite import Pipeline, processors as p

def make(folder: str, times: int = 1):
    pipe = Pipeline()
    pipe.read_from([folder] * times).write_to(p.write_list("out"))
    return pipe

pipe = make("x")
"""


def kinds(a: int, b: float | None, c: bool, d: Path, e, f: dict[str, int] | None = None):  # type: ignore[no-untyped-def]
    return a, b, c, d, e


def test_texts_are_converted_as_the_annotations_say() -> None:
    made = with_settings(kinds, ["a=7", "b=.5", "c=no", "d=x/", "e=1=2"])()
    assert made == (7, 0.5, False, Path("x"), "1=2")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("a=x", "argument 'a' of .* must be int; 'x' cannot be converted"),
        ("c=maybe", "argument 'c' of .* must be bool"),
        ("f=1", "argument 'f' of .* must be dict"),
        ("g=1", "has no argument 'g'; its arguments are: a, b"),
        ("a", "--set needs NAME=VALUE; got 'a'"),
    ],
)
def test_what_does_not_fit_is_refused(setting: str, message: str) -> None:
    with pytest.raises(PyriteError, match=message):
        with_settings(kinds, [setting])


def test_a_pipeline_with_arguments_is_run_and_shown(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    flow = f"{tmp_path}/flow.py:make"
    run = CliRunner().invoke(
        app, ["run", flow, "--light", "--set", "folder=data/", "--set", "times=2"]
    )
    assert (run.exit_code, "data/" in run.output) == (0, True)
    show = CliRunner().invoke(app, ["show", flow, "--set", "folder=data/"])
    assert "read_items" in show.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["flow.py:nothing"], "nothing called 'nothing'; it has pipe"),
        (["flow.py:make"], "--set folder=..."),
        (["flow.py:make", "--set", "folder=a", "--set", "folder=b"], "'folder' twice"),
        (["flow.py:stage"], "end this stage with write_to(sink), and name its Pipeline"),
        (["flow.py:pipe", "--explain", "--format", "dot"], "--explain and --format cannot"),
    ],
)
def test_a_wrong_command_says_what_to_write(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flow.py").write_text(FLOW + "stage = Pipeline().read_from([1])\n")
    monkeypatch.chdir(tmp_path)
    show = CliRunner().invoke(app, ["show", *arguments], env={"COLUMNS": "300"})
    assert show.exit_code in (1, 2)
    assert message in " ".join(show.output.split())


def test_what_is_no_function_takes_no_arguments(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    run = CliRunner().invoke(app, ["run", f"{tmp_path}/flow.py:pipe", "--light", "--set", "a=1"])
    assert run.exit_code != 0
    assert "--set is for a function" in run.output
