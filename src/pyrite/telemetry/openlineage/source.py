"""Where the source code of a job is: the file, and the commit if it is in a git repository."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from functools import lru_cache

from pyrite.telemetry.openlineage.naming import without_secrets


@dataclass(frozen=True, slots=True)
class Source:
    type: str
    url: str
    repository: str | None = None
    path: str | None = None
    version: str | None = None
    branch: str | None = None


@lru_cache(maxsize=256)
def source_of(file: str) -> Source:
    """Asks git, so it takes some milliseconds."""
    answer = _git(file, "rev-parse", "--show-toplevel", "HEAD", "--abbrev-ref", "HEAD")
    if answer is None or len(answer.splitlines()) != 3:
        return Source("file", f"file://{file}")
    top, version, branch = answer.splitlines()
    path = os.path.relpath(os.path.realpath(file), top)
    remote = _git(file, "config", "--get", "remote.origin.url")
    repository = None if remote is None else without_secrets(remote)
    page = None if repository is None else page_of(repository)
    url = f"file://{file}" if page is None else f"{page}/blob/{version}/{path}"
    return Source("git", url, repository, path, version, None if branch == "HEAD" else branch)


def page_of(repository: str) -> str | None:
    """The page of a repository on the web, as the common hosts have it.

    >>> page_of("git@host.example:team/repo.git")
    'https://host.example/team/repo'
    >>> page_of("https://host.example/team/repo.git")
    'https://host.example/team/repo'
    >>> page_of("/srv/repo.git")
    """
    found = re.fullmatch(
        r"(?:ssh://)?(?:[^@/]+@)?([^/:@]+)(?::\d+)?[:/](.+?)(?:\.git)?/?", repository
    )
    if repository.startswith(("http://", "https://")):
        return repository.removesuffix("/").removesuffix(".git")
    if found is None or repository.startswith(("/", "file:")):
        return None
    return f"https://{found[1]}/{found[2]}"


def _git(file: str, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", os.path.dirname(file) or ".", *arguments],
            capture_output=True,
            text=True,
            timeout=5,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
