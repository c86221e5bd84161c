"""Finds what cannot be pickled inside a function or an object, and the way to it: through
variables, defaults, attributes and elements. Pure: it only describes."""

from __future__ import annotations

import dis
import functools
import io
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, fields, is_dataclass
from types import CodeType, FunctionType, GeneratorType, MethodType
from typing import Any

import cloudpickle

from pyrite.functions import describe, shorten
from pyrite.processors.loops.chain import StepSupplier
from pyrite.processors.loops.steps import Step

MOST_ELEMENTS = 10_000
"""How many elements of a container are tried."""


@dataclass(frozen=True, slots=True)
class Unpicklable:
    """A value that cannot be pickled. `way` is how to get there, and `advice` what to do."""

    value: Any
    way: str
    advice: str


def find_unpicklable(thing: Any) -> Unpicklable | None:
    """What cannot be pickled inside a thing that cannot be pickled, as far inside as it can be
    found. None if all parts of it can be.

    >>> import threading
    >>> lock = threading.Lock()
    >>> find_unpicklable({"a": [1, lock]}).way
    "the value of 'a', whose element 1 is a _thread.lock"
    """
    if can_be_pickled(thing):
        return None
    hops: list[_Hop] = []
    seen = {id(thing)}
    value = thing
    while (hop := _first_bad_part(value, seen)) is not None:
        hops.append(hop)
        seen.add(id(hop.value))
        value = hop.value
    return Unpicklable(value, _sentence(thing, hops, value), _advice(value))


def can_be_pickled(thing: Any) -> bool:
    try:
        cloudpickle.dumps(thing)
    except Exception:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Hop:
    """From a value to a part of it. `how` is a noun for the part, such as "attribute `x`"; `uses`
    if the value is a function that uses the part by a name."""

    how: str
    value: Any
    uses: bool = False
    is_shown: bool = True
    """Whether people know of this hop: a step of Pyrite's own is passed through."""


def _first_bad_part(value: Any, seen: set[int]) -> _Hop | None:
    for hop in _parts(value):
        if id(hop.value) not in seen and not can_be_pickled(hop.value):
            return hop
    return None


def _parts(value: Any) -> Iterator[_Hop]:
    """What is pickled together with a value, in a useful order."""
    if isinstance(value, FunctionType):
        yield from _of_function(value)
    elif isinstance(value, MethodType):
        yield _Hop(f"object {shorten(value.__self__, 60)}", value.__self__)
        yield _Hop("function", value.__func__, is_shown=False)
    elif isinstance(value, functools.partial):
        yield _Hop("function", value.func, is_shown=False)
        yield from _elements(value.args, "argument")
        yield from (_Hop(f"argument `{key}`", each) for key, each in value.keywords.items())
    elif isinstance(value, type):
        yield from _of_class(value)
    elif isinstance(value, StepSupplier):
        yield _Hop("step", value.step, is_shown=False)
    elif isinstance(value, Mapping):
        for key, each in _some(value.items()):
            yield _Hop(f"key {shorten(key, 60)}", key)
            yield _Hop(f"value of {shorten(key, 60)}", each)
    elif isinstance(value, (list, tuple)):
        yield from _elements(value, "element")
    elif isinstance(value, Set):
        yield from (_Hop(f"element {shorten(each, 60)}", each) for each in _some(value))
    else:
        yield from _of_object(value)


def _of_function(function: FunctionType) -> Iterator[_Hop]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield _Hop(f"variable `{name}`", cell.cell_contents, uses=True)
        except ValueError:  # not assigned yet
            continue
    for name in sorted(_globals_of(function.__code__)):
        if name in function.__globals__:
            yield _Hop(f"global variable `{name}`", function.__globals__[name], uses=True)
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = function.__defaults__ or ()
    named = dict(zip(positional[len(positional) - len(defaults) :], defaults))
    for name, value in {**named, **(function.__kwdefaults__ or {})}.items():
        yield _Hop(f"default of its argument `{name}`", value, uses=True)
    yield from (_Hop(f"attribute `{name}`", each) for name, each in vars(function).items())


def _globals_of(code: CodeType) -> set[str]:
    """The names of the global variables that code uses, and the functions inside it."""
    names = {each.argval for each in dis.get_instructions(code) if each.opname.endswith("_GLOBAL")}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _globals_of(constant)
    return names


def _of_class(kind: type) -> Iterator[_Hop]:
    for name, value in list(vars(kind).items()):
        inside = getattr(value, "__func__", value)  # of a static method or a class method
        if isinstance(value, property):
            inside = value.fget
        if name not in ("__dict__", "__weakref__", "__doc__", "__module__"):
            what = "method" if isinstance(inside, FunctionType) else "attribute"
            yield _Hop(f"{what} `{name}`", inside)
    yield from (_Hop(f"base class {base.__qualname__}", base) for base in kind.__bases__)


def _of_object(value: Any) -> Iterator[_Hop]:
    try:
        state = value.__getstate__()
    except Exception:  # it says itself that it cannot be pickled
        state = None
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: getattr(value, field.name, None) for field in fields(value)}
    elif isinstance(state, tuple) and len(state) == 2:
        named = {**(state[0] or {}), **(state[1] or {})}
    else:
        named = state if isinstance(state, dict) else {}
    yield from (_Hop(f"attribute `{name}`", each) for name, each in named.items())
    yield _Hop(f"class {type(value).__qualname__}", type(value))


def _elements(values: Any, what: str) -> Iterator[_Hop]:
    return (_Hop(f"{what} {number}", each) for number, each in enumerate(_some(values)))


def _some(values: Any) -> Iterator[Any]:
    return (value for value, _ in zip(list(values), range(MOST_ELEMENTS)))


def _sentence(thing: Any, hops: list[_Hop], value: Any) -> str:
    """`<function f, flow.py line 3> uses the variable `client`, whose attribute `_lock` is a
    _thread.lock`."""
    owner, text, link = thing, "", " is "
    for hop in hops:
        if hop.is_shown and not _is_function_of_step(owner, hop):
            text, link = _with_hop(text, owner, hop)
        owner = hop.value
    name = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    article = "an" if name[0] in "aeiouAEIOU" else "a"
    return f"{text or _described(value)}{link}{article} {name}"


def _with_hop(text: str, owner: Any, hop: _Hop) -> tuple[str, str]:
    """The sentence with one more hop, and what links it to what the part is."""
    if hop.uses:
        function = describe(owner)
        start = f"{text}, {function}, which" if text else function
        return f"{start} uses the {hop.how}", ", "
    if text:
        return f"{text}, whose {hop.how}", " is "
    if _is_step(owner):
        return f"its argument {hop.how.removeprefix('attribute ')}", " is "
    if isinstance(owner, (Mapping, list, tuple, Set)):
        return f"the {hop.how}", " is "
    return f"the {hop.how} of {_described(owner)}", " is "


def _is_step(value: Any) -> bool:
    return isinstance(value, Step) or type(value).__module__.startswith("pyrite.")


def _is_function_of_step(owner: Any, hop: _Hop) -> bool:
    """People know the function that they gave a step by its name."""
    return _is_step(owner) and callable(hop.value) and not isinstance(hop.value, type)


def _described(value: Any) -> str:
    return describe(value) if callable(value) else shorten(value, 60)


def _advice(value: Any) -> str:
    if isinstance(value, GeneratorType) or (hasattr(value, "__next__") and hasattr(value, "send")):
        return "Use a list, or another value that can be read more than once"
    if isinstance(value, io.IOBase):
        return "Open the file inside the function that uses it"
    return (
        "Create it where it is used: with map_with(service, fn), inside the function, or in init() "
        "of a processor"
    )
