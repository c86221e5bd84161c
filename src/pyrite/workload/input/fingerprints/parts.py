"""The parts of a fingerprint: what the code, the arguments, the files and the upstream results of a
job were. By comparing them one can say why a job runs again."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyrite.workload.input.fingerprints.digests import digest
from pyrite.workload.input.fingerprints.survey import Survey

SHORT = 8  # bytes of each digest; they only explain, they do not decide
UNITS_MAX = 64
UPSTREAM_MAX = 64
RANDOM = b"?"  # the digest of what cannot be fingerprinted; `unsure` says so
FOLDER = "working directory"  # the name of that of a program, among its arguments
OTHERS = ""  # the name under which the rest is kept together, if there are too many
_NO_MAPPING: Mapping[str, bytes] = {}


@dataclass(frozen=True, slots=True)
class Parts:
    """Each mapping has short digests. `code` has the functions, classes, global variables and
    modules that the command uses, as `function steps.clean` or `value steps.LIMIT`; `command` is
    the name of its function there, and `places` says where the functions are. `made` has the files
    that the job wrote. `unsure` has sentences about what prevents the job from being skipped."""

    command: str = ""
    code: Mapping[str, bytes] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, bytes] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    upstream: Mapping[str, bytes] = field(default_factory=dict)
    made: tuple[str, ...] = ()
    unsure: tuple[str, ...] = ()

    def pack(self) -> bytes:
        """
        >>> parts = Parts("function f", {"function f": b"1"}, arguments={"month": b"2"})
        >>> Parts.unpack(parts.pack()) == parts
        True
        """
        command = pack_command(self.command, self.code, self.places, self.unsure)
        return with_run(
            with_arguments(command, self.arguments), self.files, self.upstream, self.made
        )

    @staticmethod
    def unpack(data: bytes) -> Parts:
        planned, files, upstream, made, disturbed = marshal.loads(data)
        parts = unpack_planned(planned)
        return replace(
            parts, files=files, upstream=upstream, made=made, unsure=(*parts.unsure, *disturbed)
        )


def of_command(command: str, survey: Survey) -> bytes:
    """The packed parts of a command, which are made once for all jobs that share it."""
    code = {
        name: RANDOM if name in survey.random else found[:SHORT]
        for name, found in sorted(survey.units.items())
    }
    if len(code) > UNITS_MAX:
        first = [command, *(name for name in code if name != command)][: UNITS_MAX - 1]
        rest = b"".join(found for name, found in code.items() if name not in first)
        code = {**{name: code[name] for name in first if name in code}, OTHERS: _short(rest)}
    elif not code:  # a program or an installed function
        code = {command: survey.digest[:SHORT]}
    places = {name: place for name, place in survey.places.items() if name in code}
    return pack_command(command, code, places, survey.reasons)


def pack_command(
    command: str, code: Mapping[str, bytes], places: Mapping[str, str], unsure: tuple[str, ...]
) -> bytes:
    return marshal.dumps((command, dict(code), dict(places), unsure), 2)


def with_arguments(
    command: bytes, arguments: Mapping[str, bytes] = _NO_MAPPING, unsure: tuple[str, ...] = ()
) -> bytes:
    """The packed parts of a job that are known when it is planned."""
    short = {name: found[:SHORT] for name, found in arguments.items()}
    return marshal.dumps((command, short, unsure), 2)


def in_folder(planned: bytes, folder: bytes) -> bytes:
    """The packed parts of a program, with the digest of its working directory."""
    command, arguments, unsure = marshal.loads(planned)
    return with_arguments(command, {**arguments, FOLDER: folder}, unsure)


def with_run(
    planned: bytes,
    files: Mapping[str, bytes] = _NO_MAPPING,
    upstream: Mapping[str, bytes] = _NO_MAPPING,
    made: tuple[str, ...] = (),
    disturbed: tuple[str, ...] = (),
) -> bytes:
    """All packed parts of a job, with those that are known when it is ready or has ended."""
    if len(upstream) > UPSTREAM_MAX:
        upstream = {OTHERS: _short(b"".join(upstream.values()))}
    short_files = {path: found[:SHORT] for path, found in files.items()} if files else {}
    short_upstream = {job: found[:SHORT] for job, found in upstream.items()} if upstream else {}
    return marshal.dumps((planned, short_files, short_upstream, made, disturbed), 2)


def unpack_planned(planned: bytes) -> Parts:
    packed, arguments, of_arguments = marshal.loads(planned)
    command, code, places, unsure = marshal.loads(packed)
    return Parts(command, code, places, arguments, unsure=(*unsure, *of_arguments))


def differences(old: Parts, new: Parts) -> list[str]:
    """Why a job that had the parts `old` runs again, as sentences without capital and full stop.
    Empty if nothing has changed.

    >>> differences(Parts(arguments={"month": b"1"}), Parts(arguments={"month": b"2"}))
    ['the argument month changed']
    """
    found: list[str] = []
    found += _changes_of_code(old, new)
    found += [
        "its working directory changed" if name == FOLDER else f"the argument {name} {how}"
        for name, how in _changes(old.arguments, new.arguments)
    ]
    found += [_of_file(path, old, new) for path, _ in _changes(old.files, new.files)]
    for job, how in _changes(old.upstream, new.upstream):
        if job == OTHERS or OTHERS in (*old.upstream, *new.upstream):
            found.append("the results of its upstream jobs changed")
        elif how == "changed":
            found.append(f"the result of its upstream job {job} changed")
        else:
            found.append(f"its upstream job {job} {how}")
    found = list(dict.fromkeys(found))
    unsure = dict.fromkeys((*old.unsure, *new.unsure))
    return [*found, *unsure]


def may_be_of(packed: bytes, new: Parts) -> bool:
    """Whether a result with these packed parts can be of a job with the parts `new`, of which the
    files and the results of the upstream jobs are not known yet."""
    if not packed:
        return True
    old = Parts.unpack(packed)
    return (
        not old.unsure
        and sorted(old.code.values()) == sorted(new.code.values())
        and sorted(old.arguments.values()) == sorted(new.arguments.values())
    )


def _changes(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """The names whose values differ, and how: changed, is new, was removed."""
    return [
        (name, "is new" if name not in old else "was removed" if name not in new else "changed")
        for name in dict.fromkeys((*new, *old))
        if old.get(name) != new.get(name)
    ]


def _changes_of_code(old: Parts, new: Parts) -> list[str]:
    if old.command != new.command:
        return [f"its command was {_noun(old.command)} and is {_noun(new.command)}"]
    found = []
    changes = _changes(old.code, new.code)
    for name, how in sorted(changes, key=lambda change: change[0] != new.command):
        kind, _, full = name.partition(" ")
        short = full.rpartition(".")[2] or full
        place = new.places.get(name) or old.places.get(name)
        where = f" ({place})" if place else ""
        if name == OTHERS:
            found.append("a helper changed")
        elif kind == "function":
            what = "the code of" if name == new.command else "the helper"
            found.append(f"{what} {short}{where} {how}")
        elif kind == "value":
            found.append(f"the global variable {short} of {full.rpartition('.')[0]} {how}")
        elif kind == "module":
            found.append(f"the module {full} {how}")
        elif kind == "class":
            found.append(f"the class {short} {how}")
        else:
            found.append(f"its command, {name}, {how}")
    return found


def _of_file(path: str, old: Parts, new: Parts) -> str:
    if not new.files.get(path):
        what = "its output file" if path in old.made else "the file"
        return f"{what} {path} is gone"
    return f"the {'output ' if path in old.made else ''}file {path} changed"


def _noun(command: str) -> str:
    return command.partition(" ")[2] if command.startswith("function ") else command


def _short(data: bytes) -> bytes:
    return digest(data)[:SHORT]
