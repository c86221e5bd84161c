"""The command `cancel`."""

from __future__ import annotations

from pyrite.cli.showing.answers import JsonOption, answering
from pyrite.cli.workload.arguments import StoreArgument
from pyrite.cli.workload.shown import show
from pyrite.errors import PyriteError
from pyrite.workload import Run


def cancel(store: StoreArgument, json: JsonOption = False) -> None:
    """Cancel a run. The results of finished jobs stay."""
    with answering(json) as answer:
        found = Run.attach(store)
        if found.has_ended:
            raise PyriteError(f"the run in '{store}' has already ended")
        cancel_run(found)
        show(found, answer)


def cancel_run(run: Run) -> None:
    try:
        run.cancel()
    except TimeoutError as error:
        raise PyriteError(str(error)) from None
