"""Secrets: values such as passwords, which a worker reads from its environment when a job runs.
They are never in the store."""

from __future__ import annotations

import copy
import json
import os
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from pyrite.errors import PyriteError

Loader = TypeVar("Loader", bound=type[Any])

HIDDEN = "***"


class MissingSecret(PyriteError):
    """The environment variable of a Secret is not set where the job runs."""


@dataclass(frozen=True, slots=True)
class Secret:
    """Stands for the value of an environment variable of the worker. It can be used in the args,
    the kwargs and the env of a job, also in lists, tuples, sets and dicts.

    >>> Secret("DB_PASSWORD")
    Secret('DB_PASSWORD')
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or {"=", "\0"} & set(self.name):
            raise ValueError(
                f"a Secret needs the name of an environment variable; got {self.name!r}"
            )

    def __repr__(self) -> str:
        return f"Secret({self.name!r})"

    def read(self) -> str:
        """The value, from the environment of this process."""
        try:
            return os.environ[self.name]
        except KeyError:
            raise MissingSecret(
                f"it needs the Secret '{self.name}', but the environment of its worker on "
                f"{socket.gethostname()} has no variable {self.name}; set it where the worker is "
                "started"
            ) from None


def names_in(value: Any) -> Iterator[str]:
    """The names of all secrets in a value."""
    waiting, met = [value], set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, Secret):
            yield one.name
        elif isinstance(one, (list, tuple, set, frozenset, dict)) and id(one) not in met:
            met.add(id(one))
            waiting.extend(one.values() if isinstance(one, dict) else one)


def revealed(value: Any) -> Any:
    """The value with the values of its secrets. Containers without secrets stay the same
    objects."""
    if isinstance(value, Secret):
        return value.read()
    if not isinstance(value, (list, tuple, set, frozenset, dict)) or not any(names_in(value)):
        return value
    if isinstance(value, dict):
        made = copy.copy(value)  # it may be of a class of its own, such as defaultdict
        for key, item in value.items():
            made[key] = revealed(item)
        return made
    items = map(revealed, value)
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def values_of(names: Iterable[str]) -> list[str]:
    """The values of these secrets, as far as they are set."""
    return [value for name in names if (value := os.environ.get(name))]


def without_values(text: str, values: Iterable[str]) -> str:
    """The text without these values of secrets, also as repr() and JSON write them.

    >>> without_values("KeyError: 'a\\\\nb'", ["a\\nb"])
    "KeyError: '***'"
    """
    forms = {form for value in values for form in _forms(value)}
    for form in sorted(forms, key=len, reverse=True):  # one may be a part of another
        text = text.replace(form, HIDDEN)
    return text


def _forms(value: str) -> Iterator[str]:
    yield value
    yield json.dumps(value)[1:-1]
    for shown in (repr(value), ascii(value)):
        yield shown[1:-1]
        yield shown[1:-1].replace("'", "\\'")  # as in a text with both kinds of quotes


def with_secrets(loader: Loader) -> Loader:
    """A YAML loader that reads `!secret NAME` as Secret("NAME")."""

    def construct(loading: Any, node: Any) -> Secret:
        return Secret(str(loading.construct_scalar(node)))

    extended: Any = type(loader.__name__, (loader,), {})
    extended.add_constructor("!secret", construct)
    return extended  # type: ignore[no-any-return]
