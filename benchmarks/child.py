"""The program of the child process of a peer: calls one function, measures its time, and prints its
answer as JSON. Only that peer has to be installed."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from time import perf_counter

NOT_INSTALLED = 3


def main(module: str, function: str, items: str, *arguments: str) -> int:
    try:
        run = getattr(import_module(module), function)
    except ModuleNotFoundError:
        return NOT_INSTALLED
    started = perf_counter()
    outcome = run(int(items), *arguments)
    seconds = perf_counter() - started
    print(json.dumps({"seconds": seconds, "outcome": outcome}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
