"""The arguments of a job: a digest of each by its name, and the paths among them."""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrite.workload.input.fingerprints.digests import digest
from pyrite.workload.input.fingerprints.node import Named
from pyrite.workload.input.fingerprints.parts import RANDOM, SHORT
from pyrite.workload.input.fingerprints.paths import paths_in
from pyrite.workload.input.fingerprints.survey import Fingerprints, Survey
from pyrite.workload.input.fingerprints.values import of_atom

_LONG = 256
_PLAIN = frozenset((int, str, float, bool, bytes, type(None)))


@dataclass(frozen=True, slots=True)
class Looked:
    """`hashed` is the digest of all arguments, and `parts` has that of each by its name. `reasons`
    has a sentence for each value that cannot be fingerprinted. `paths` has the parameter of each
    path. `modules` are those of the survey."""

    hashed: bytes
    parts: dict[str, bytes]
    paths: Mapping[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    modules: frozenset[tuple[str, str]] = frozenset()


class Arguments:
    def __init__(self, fingerprints: Fingerprints) -> None:
        self._fingerprints = fingerprints
        self._known: dict[
            tuple[str, int], tuple[Any, Survey]
        ] = {}  # by name and id(), with the value kept alive: jobs may share a large value

    def look(self, args: Sequence[Any], kwargs: Mapping[str, Any], names: Sequence[str]) -> Looked:
        """`names` are those of the positional parameters. The order of kwargs does not count."""
        given = {
            **{names[n] if n < len(names) else f"args[{n}]": value for n, value in enumerate(args)},
            **{name: kwargs[name] for name in sorted(kwargs)},
        }
        hashed: list[bytes] = []
        parts: dict[str, bytes] = {}
        paths: dict[str, str] = {}
        reasons: list[str] = []
        modules: frozenset[tuple[str, str]] = frozenset()
        for name, value in given.items():
            if type(value) in _PLAIN:
                found = parts[name] = _of_plain(value)
            else:
                known = self._known.get((name, id(value)))
                if known is None:
                    named = Named(name, value)
                    known = self._known[name, id(value)] = value, self._fingerprints.survey(named)
                survey = known[1]
                found = survey.digest
                parts[name] = RANDOM if survey.reasons else found
                reasons.extend(survey.reasons)
                modules |= survey.modules
                for path in paths_in(value):
                    paths.setdefault(str(path), name)
            hashed += [name.encode(), found]
        return Looked(digest(*hashed), parts, paths, tuple(reasons), modules)


def _of_plain(value: Any) -> bytes:
    if isinstance(value, (bytes, str)) and len(value) > _LONG:
        return digest(of_atom(value))
    # Version 0 of the format depends on the value only, and not on what else refers to it.
    data = marshal.dumps(value, 0)
    return data if len(data) <= SHORT else digest(data)
