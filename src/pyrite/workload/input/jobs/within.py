"""What is set and checked around a job: environment variables, the working directory, a limit of
its memory, its secrets, its files. It travels in front of the bytes of the job, so jobs without it
cost nothing."""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyrite.functions import shorten
from pyrite.workload.input.jobs import amounts
from pyrite.workload.input.jobs.secrets import Secret, names_in

if TYPE_CHECKING:
    from pyrite.workload.input.jobs.job import Job

_MARK = b"+"  # a pickle begins with another byte
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Within:
    """`secrets` are the names of all secrets of the job, in its arguments and in `env`."""

    env: tuple[tuple[str, str | Secret], ...] = ()
    cwd: str | None = None
    memory: int = 0
    secrets: tuple[str, ...] = ()
    files_in: tuple[str, ...] = ()
    files_out: tuple[str, ...] = ()

    def what_counts(self) -> bytes:
        """What of this decides whether the result of the job is up to date, for a fingerprint."""
        return repr((self.env, self.cwd)).encode() if self.env or self.cwd is not None else b""


NOTHING = Within()


def within_of(job: Job) -> Within:
    """What is around a job without problems."""
    secrets = set(names_in((job.args, job.kwargs, job.env)))
    has_files = bool(job.files_in or job.files_out)
    if not secrets and job.env is None and job.cwd is None and job.memory is None and not has_files:
        return NOTHING
    return Within(
        env=tuple(sorted((name, _text(value)) for name, value in (job.env or {}).items())),
        cwd=os.fspath(job.cwd) if job.cwd is not None else None,
        memory=amounts.memory(job.memory) if job.memory is not None else 0,
        secrets=tuple(sorted(secrets)),
        files_in=tuple(map(str, job.files_in)),
        files_out=tuple(map(str, job.files_out)),
    )


def within_problems(job: Job) -> list[str]:
    """What is wrong with these options of a job, as the ends of sentences that begin with the
    job."""
    problems = []
    env: object = job.env
    if env is not None and not isinstance(env, Mapping):
        problems.append(f"has env={shorten(env)}; env must be a dict of environment variables")
    for name, value in env.items() if isinstance(env, Mapping) else ():
        if not isinstance(name, str) or not name or {"=", "\0"} & set(name):
            problems.append(
                f"has env={{{shorten(name)}: ...}}; the name of an environment variable is a str "
                "without '='"
            )
        elif not _is_text(value):
            problems.append(
                f"has env={{{name!r}: {shorten(value)}}}; the value of an environment variable is "
                "a str, a number, a path or a Secret"
            )
    cwd: object = job.cwd
    if cwd is not None and (not isinstance(cwd, (str, os.PathLike)) or not os.fspath(cwd)):
        problems.append(f"has cwd={shorten(cwd)}; cwd must be the path of a folder")
    return problems


def wrap(blob: bytes, within: Within) -> bytes:
    """
    >>> within, blob = unwrap(wrap(b"the job", Within(cwd="data")))
    >>> within.cwd, blob
    ('data', b'the job')
    >>> unwrap(pickle.dumps(7))[0]
    """
    head = pickle.dumps(within, protocol=5)
    return _MARK + _LENGTH.pack(len(head)) + head + blob


def unwrap(blob: bytes) -> tuple[Within | None, bytes]:
    if not blob.startswith(_MARK):
        return None, blob
    start = len(_MARK) + _LENGTH.size
    end = start + _LENGTH.unpack_from(blob, len(_MARK))[0]
    within: Within = pickle.loads(blob[start:end])
    return within, blob[end:]


def _is_text(value: object) -> bool:
    if isinstance(value, str):
        return "\0" not in value
    return isinstance(value, (int, float, os.PathLike, Secret)) and not isinstance(value, bool)


def _text(value: object) -> str | Secret:
    if isinstance(value, Secret):
        return value
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
