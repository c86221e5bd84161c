"""Which files that the previous version of a job wrote are outputs of its present version."""

from __future__ import annotations

from pyrite.workload.input.fingerprints.files import JobFiles
from pyrite.workload.input.fingerprints.parts import Parts


def outputs_again(old: Parts, new: Parts, files: JobFiles) -> tuple[str, ...]:
    """The files of `old.made` that play the same role in the present version. Not all do: after
    `cp a b`, the job may have become `cp b c`, and what it wrote before is now an input.

    >>> old = Parts("function copy", arguments={"source": b"1", "target": b"2"}, made=("b",))
    >>> new = Parts("function copy", arguments={"source": b"2", "target": b"3"})
    >>> files = JobFiles(arguments=("b", "c"), parameters=("source", "target"))
    >>> outputs_again(old, new, files), outputs_again(old, old, files)
    ((), ('b',))
    """
    if not _is_same_command(old, new):
        return ()
    parameters = dict(zip(files.arguments, files.parameters))
    return tuple(
        path
        for path in old.made
        if path not in files.inputs
        and (
            path not in parameters
            or old.arguments.get(parameters[path]) == new.arguments.get(parameters[path])
        )
    )


def _is_same_command(old: Parts, new: Parts) -> bool:
    """Whether it is the same program with the same arguments, or a function of the same name: one
    whose code was edited still writes where it wrote."""
    if old.command != new.command:
        return False
    has_name = new.command.startswith("function ") and not new.command.endswith("<lambda>")
    return has_name or old.code == new.code
