"""The parameters of the function of a job: which of them get the results of upstream jobs, and what
is wrong with the values of the others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyrite.functions import did_you_mean


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a function: the positional ones, those that can be given by name, and those
    that have no default value."""

    positional: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
    takes_any_position: bool = True
    takes_any_name: bool = True

    def wanted(
        self, upstream: Collection[str], args: Sequence[Any], names: Collection[str]
    ) -> tuple[str, ...]:
        """The upstream jobs whose results the function gets: those with the name of a parameter
        that gets no value from args or, by its name, otherwise."""
        given = {*self.positional[: len(args)], *names}
        return tuple(name for name in upstream if name in self.named and name not in given)

    def problems(
        self,
        upstream: Collection[str],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        inputs: Collection[str] = (),
    ) -> list[str]:
        """What is wrong with the arguments, as the ends of sentences. `inputs` has the parameters
        that `inputs=` names."""
        found = []
        given = {*self.positional[: len(args)], *kwargs, *inputs}
        for name in self.required:
            if name not in given and (name not in upstream or name not in self.named):
                found.append(
                    f"has a parameter '{name}' without a value: there is no upstream job '{name}', "
                    "and args, kwargs and inputs do not give it"
                )
        if len(args) > len(self.positional) and not self.takes_any_position:
            found.append(
                f"takes {len(self.positional)} positional arguments, but args has {len(args)}"
            )
        if kwargs and not self.takes_any_name:
            found.extend(
                f"has no parameter '{name}', but kwargs gives it"
                for name in kwargs
                if name not in self.named
            )
        found.extend(
            f"gets the parameter '{name}' twice, from args and from kwargs"
            for name in self.positional[: len(args)]
            if name in kwargs
        )
        for name in inputs:
            if name in self.positional[: len(args)] or name in kwargs:
                source = "kwargs" if name in kwargs else "args"
                found.append(f"gets the parameter '{name}' twice, from {source} and from inputs")
            elif name in self.positional and name not in self.named:
                found.append(
                    f"has the parameter '{name}', which cannot be given by name, so inputs cannot "
                    "give it"
                )
            elif name not in self.named and not self.takes_any_name:
                near = did_you_mean(name, self.named)
                found.append(f"has no parameter '{name}', but inputs gives it{near}")
        return found


def parameters_of(function: Callable[..., Any]) -> Parameters:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):  # the parameters of some built-in functions are not known
        return Parameters()
    of_kind: dict[Any, list[str]] = {}
    for parameter in signature.parameters.values():
        of_kind.setdefault(parameter.kind, []).append(parameter.name)
    only_positional = of_kind.get(inspect.Parameter.POSITIONAL_ONLY, [])
    either = of_kind.get(inspect.Parameter.POSITIONAL_OR_KEYWORD, [])
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return Parameters(
        positional=(*only_positional, *either),
        named=frozenset([*either, *of_kind.get(inspect.Parameter.KEYWORD_ONLY, [])]),
        required=tuple(
            p.name
            for p in signature.parameters.values()
            if p.default is inspect.Parameter.empty and p.kind not in variable
        ),
        takes_any_position=inspect.Parameter.VAR_POSITIONAL in of_kind,
        takes_any_name=inspect.Parameter.VAR_KEYWORD in of_kind,
    )
