"""Inlining: the generated loops contain the expression of a very small function instead of a call.

Most key and count functions only return an argument, pick a field, add or append. The call would
cost more than the work that they do. Such a function is recognized by its bytecode.
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
    """The expression for `function` in a loop: its inlined body, or a call of it as `name`.

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
    """Equal for two functions that do the same and use only their arguments and constants."""
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
