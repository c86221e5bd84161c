"""Inlining: the smallest functions, which only hand on, pick, add or append, are written into a
loop instead of being called.

They are what keys and counts are mostly made of, and a call costs more than all that they do. A
function is known by its bytecode.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

_SMALLEST: list[tuple[Callable[..., Any], str]] = [
    (lambda a: a, "{0}"),
    (lambda a: a[0], "{0}[0]"),
    (lambda a: a[1], "{0}[1]"),
    (lambda a, b: a, "{0}"),
    (lambda a, b: a + 1, "{0} + 1"),
    (lambda a, b: a + b, "{0} + {1}"),
    (lambda a, b: a + b[1], "{0} + {1}[1]"),
    (lambda a, b: a.append(b), "{0}.append({1})"),
    (lambda a, b: a.append(b[1]), "{0}.append({1}[1])"),
]


def call_or_inline(function: Callable[..., Any], name: str, *arguments: str) -> str:
    """The expression that stands for a call of `function`, which the loop knows as `name`.

    >>> call_or_inline(lambda pair: pair[0], "fn", "v"), call_or_inline(len, "fn", "v")
    ('v[0]', 'fn(v)')
    """
    if (
        type(function) is FunctionType
        and function.__defaults__ is None
        and function.__kwdefaults__ is None
    ):
        template = _TEMPLATES.get(_shape(function.__code__))
        if template is not None and function.__code__.co_argcount == len(arguments):
            return template.format(*arguments)
    return f"{name}({', '.join(arguments)})"


def _shape(code: CodeType) -> tuple[Any, ...]:
    """What decides what a function does, of one that uses nothing but its arguments and
    constants."""
    constants = tuple(
        (type(constant), constant) for constant in code.co_consts if constant is not None
    )
    return (
        code.co_code,
        constants,
        code.co_names,
        code.co_freevars,
        code.co_argcount,
        code.co_kwonlyargcount,
        code.co_flags & 0x2F,
    )


_TEMPLATES = {_shape(function.__code__): template for function, template in _SMALLEST}
