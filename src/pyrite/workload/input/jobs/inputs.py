"""The inputs of a job: for each parameter that `inputs=` names, the jobs whose results it gets.

The id of a job need not be the name of a parameter, and several results can be collected into one
parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pyrite.functions import shorten
from pyrite.workload.input.tables import job_id


class Input(NamedTuple):
    """The jobs whose results one parameter gets: as a list, as a dict if there are keys, or, if it
    is a single one, as it is."""

    parameter: str
    ids: tuple[str, ...]
    keys: tuple[str, ...] | None = None
    is_single: bool = False

    def assembled(self, results: Sequence[Any]) -> Any:
        """The value of the parameter, from the results of the jobs.

        >>> Input("parts", ("load-1", "load-2"), keys=("x", "y")).assembled([10, 20])
        {'x': 10, 'y': 20}
        """
        if self.is_single:
            return results[0]
        return list(results) if self.keys is None else dict(zip(self.keys, results))


def interpret_inputs(given: Any) -> tuple[Input, ...]:
    """The inputs that a user gave. Raises ValueError, with the end of a sentence, if they are not
    valid.

    >>> interpret_inputs({"day": "load-2024", "parts": ["a", "b"]})[1]
    Input(parameter='parts', ids=('a', 'b'), keys=None, is_single=False)
    """
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise ValueError(
            f"has inputs={shorten(given)}; inputs must be a dict from the names of parameters to "
            "the ids of jobs, as in {'day': 'load-2024'}"
        )
    return tuple(_input(name, value) for name, value in given.items())


def _input(name: str, value: Any) -> Input:
    if isinstance(value, Mapping):
        keys = tuple(value)
        return Input(name, tuple(_ids(name, value.values())), keys)
    if hasattr(value, "tolist"):  # an array, from a table
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return Input(name, tuple(_ids(name, value)))
    return Input(name, tuple(_ids(name, [value])), is_single=True)


def _ids(name: str, values: Any) -> Iterator[str]:
    for value in values:
        try:
            yield job_id(value)
        except ValueError:
            raise ValueError(
                f"has inputs={{'{name}': ...}} with {shorten(value)}; an input is the id of a job, "
                "a list of ids, or a dict with ids as values"
            ) from None
