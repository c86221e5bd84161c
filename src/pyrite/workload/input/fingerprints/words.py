"""The words of a program and its arguments that may be paths of files or folders."""

from __future__ import annotations

from collections.abc import Sequence


def possible_paths(argv: Sequence[str]) -> tuple[str, ...]:
    """Each word, and what follows a `=`, an `@` or the letter of an option in it. Most of them are
    no files; that is seen when the files are looked at.

    >>> possible_paths(["dd", "if=in.csv", "--out=@x", "-Ilib"])
    ('dd', 'if=in.csv', 'in.csv', '--out=@x', '@x', 'x', '-Ilib', 'lib')
    """
    found: dict[str, None] = {}
    for word in argv:
        found[word] = None
        _, _, value = word.partition("=")
        if value:
            found[value] = None
        for part in (word, value):
            if part.startswith("@"):
                found[part[1:]] = None
        if word.startswith("-") and not word.startswith("--"):
            found[word[2:]] = None
    found.pop("", None)
    return tuple(found)
