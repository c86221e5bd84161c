"""What a peer's child process runs: one function, timed, with its answer printed as JSON. It needs
nothing but that peer."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from time import perf_counter

NOT_INSTALLED = 3


def main(module: str, function: str, items: str) -> int:
    try:
        run = getattr(import_module(module), function)
    except ModuleNotFoundError:
        return NOT_INSTALLED
    started = perf_counter()
    outcome = run(int(items))
    seconds = perf_counter() - started
    print(json.dumps({"seconds": seconds, "outcome": outcome}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
