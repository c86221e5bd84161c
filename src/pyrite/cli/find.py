"""Finds the object that a command line argument names, such as a DAG: `package.module:name`, or
`path/to/file.py:name`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeVar

import cloudpickle
import typer

from pyrite.cli.completing import dags
from pyrite.cli.settings import with_settings
from pyrite.dag import DAG, MakesDAG, dag_of
from pyrite.errors import PyriteError
from pyrite.functions import describe, did_you_mean, message_of, shorten

Kind = TypeVar("Kind")

DagArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODULE:DAG",
        help="A module or a .py file, and the name of a DAG or a Pipeline, or of a function that "
        "returns one.",
        autocompletion=dags,
    ),
]


def find_dag(text: str, settings: Sequence[str] = ()) -> DAG:
    """The DAG or Pipeline of that name, or the one that a function of that name returns. `settings`
    are its arguments."""
    where, _, name = text.rpartition(":")
    if not where or not name:
        example = f"{text}:dag" if text.endswith(".py") else "my_jobs.words:dag"
        raise PyriteError(f"'{text}' does not name a DAG; write module:name, as in {example}")
    return find_in(find_module(where), where, name, DAG, dag_of, settings)


def find_in(
    module: ModuleType,
    where: str,
    name: str,
    kind: type[Kind],
    converted: Callable[[Any], Any] = lambda found: None,
    settings: Sequence[str] = (),
) -> Kind:
    """The object of that name in the module, which must be of that kind, or become so by
    `converted`. If it is a function, the function is called, and the object is its return value."""
    what = kind.__name__
    try:
        found: Any = getattr(module, name)
    except AttributeError:
        raise PyriteError(
            f"'{where}' has nothing called '{name}'{_hint(module, where, name, kind)}"
        ) from None
    if callable(found) and not isinstance(found, kind):
        found = _called(with_settings(found, settings), f"{where}:{name}", what)
    elif settings:
        raise PyriteError(f"--set is for a function, but '{where}:{name}' is not one")
    if not isinstance(found, kind):
        found = converted(found) or found
    if not isinstance(found, kind):
        raise PyriteError(
            f"'{where}:{name}' is not a {what}, nor a function that returns one; it is "
            f"{shorten(found)}{_instead_of(found)}"
        )
    return found


def find_module(where: str) -> ModuleType:
    """Imports a module by its name or from a .py file. If it is not an installed package, its
    functions are pickled by value, because workers may not be able to import it."""
    module = _load_file(Path(where)) if where.endswith(".py") else _load_module(where)
    if not _is_installed(module):
        cloudpickle.register_pickle_by_value(module)
    return module


def _hint(module: ModuleType, where: str, name: str, kind: type[Kind]) -> str:
    what = kind.__name__
    if getattr(module, "__file__", None) is None:
        return f", because '{where}' is a folder; name a module in it, as in {where}.my_module:name"
    if near := did_you_mean(name, vars(module)):
        return near
    names = [key for key, value in vars(module).items() if _is_a(kind, value)]
    if names:
        return f"; it has {', '.join(names)}"
    return f", and no {what} at all; name a {what}, or a function that returns one"


def _is_a(kind: type[Kind], value: Any) -> bool:
    kinds = (DAG, MakesDAG) if kind is DAG else kind
    return isinstance(value, kinds) and not isinstance(value, type)


def _instead_of(found: Any) -> str:
    from pyrite.pipeline.stage import Stage  # slow to import, and only needed here

    if not isinstance(found, Stage):
        return ""
    return "; end this stage with write_to(sink), and name its Pipeline in place of the stage"


def _called(function: Callable[[], Any], text: str, what: str) -> Any:
    """Calls the user's function without arguments and returns its value."""
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise PyriteError(
            f"'{text}', {describe(function)}, cannot be called without arguments ({error}); "
            f"{_way_out(function, what)}"
        ) from None
    except ValueError:  # the parameters of some built-in functions are not known
        pass
    return _run(function, f"'{text}' failed when it was called to make a {what}")


def _way_out(function: Callable[..., Any], what: str) -> str:
    needed = [
        each.name
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty
        and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    if what != "DAG" or not needed:
        return f"a function that makes a {what} must need none"
    return f"give them as {' '.join(f'--set {name}=...' for name in needed)}"


def _run(action: Callable[[], Kind], what_failed: str) -> Kind:
    """Runs the user's code. If it raises an exception, raises a PyriteError that says what failed,
    with the exception as its cause."""
    try:
        return action()
    except SystemExit as error:
        raise PyriteError(f"{what_failed}: it called sys.exit({error.code!r})") from error
    except Exception as error:
        raise PyriteError(f"{what_failed}: {message_of(error)}") from error


def _load_module(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    if not all(part.isidentifier() for part in name.split(".")):
        raise PyriteError(
            f"'{name}' is not the name of a module, as in my_jobs.words, nor of a .py file"
        )
    try:
        return _run(lambda: importlib.import_module(name), f"'{name}' cannot be loaded")
    except PyriteError as error:
        missing = getattr(error.__cause__, "name", None)
        is_missing = isinstance(error.__cause__, ModuleNotFoundError) and missing is not None
        if is_missing and (name == missing or name.startswith(f"{missing}.")):
            raise PyriteError(
                f"there is no module '{name}' here ({Path.cwd()}) or among the installed packages"
            ) from None
        raise


def _is_installed(module: ModuleType) -> bool:
    return any(
        part in ("site-packages", "dist-packages") for part in Path(module.__file__ or "").parts
    )


def _load_file(path: Path) -> ModuleType:
    if path.is_dir():
        raise PyriteError(f"'{path}' is a folder; name a Python file")
    if not path.is_file():
        raise PyriteError(f"there is no file '{path}'")
    sys.path.insert(0, str(path.parent.resolve()))
    name = f"pyrite_file_{path.stem}"  # the file may have the name of a module that exists
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader = spec.loader
    _run(lambda: loader.exec_module(module), f"'{path}' cannot be loaded")
    return module
