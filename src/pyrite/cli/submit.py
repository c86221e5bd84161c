"""The command `submit`, which runs a DAG as a durable job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.markup import escape

from pyrite.cli.cluster import Collections, CollectionsFile, collections_at
from pyrite.cli.durable import Durable, DurableFile, place_of
from pyrite.cli.errors import say
from pyrite.cli.find import DagArgument, find_dag
from pyrite.cli.looking import command, existing_store
from pyrite.cli.progress import seconds_of, show_metrics
from pyrite.cli.settings import Settings
from pyrite.cli.showing.answers import JsonOption, QuietOption, answering, error_words
from pyrite.cli.showing.documents import execution_document
from pyrite.cli.showing.watch import REFRESH_SECONDS, Watch
from pyrite.collections.opening import MEMORY, redis_at
from pyrite.errors import PyriteError
from pyrite.interrupts import INTERRUPTED
from pyrite.job import Execution, JobConfig, durable_job
from pyrite.watching.observers import begun
from pyrite.watching.recorders import open_recorder

if TYPE_CHECKING:
    from pyrite.durable.hosts.durable import Durable as DurableJobs
    from pyrite.durable.store.store import Store

NOT_CANCELLED: Final = "the command was interrupted; the job is not cancelled"


def submit(
    dag: DagArgument,
    settings: Settings = None,
    durable: Durable = None,
    durable_file: DurableFile = None,
    name: Annotated[
        str | None, typer.Option(help="The name of the job. Default: MODULE:DAG.")
    ] = None,
    members: Annotated[
        int | None,
        typer.Option(help="How many parts a task has that needs its items in order.", min=1),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Whether to wait until the job has ended.")
    ] = True,
    peers: Annotated[
        int | None,
        typer.Option(
            help="How many peers to start, if nobody runs the jobs of a folder.", min=1, max=512
        ),
    ] = None,
    collections: Collections = MEMORY,
    collections_file: CollectionsFile = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Run a DAG as a durable job: it ends with the right result, whatever dies on the way.

    The coordinator and the peers of the place run it. If a folder has none, this command starts
    them, and they end with it.
    """
    from pyrite.durable.hosts.durable import Durable as DurableJobs
    from pyrite.durable.hosts.places import is_folder

    with answering(json, quiet=quiet) as answer, ExitStack() as closing:
        recording = closing.enter_context(open_recorder())
        console = answer.console
        place = place_of(durable, durable_file)
        url = collections_at(collections, collections_file)
        if is_folder(place) and url != MEMORY:
            raise PyriteError(
                "the named maps and lists of a folder are in the folder; leave out --collections"
            )
        found = find_dag(dag, settings or ())
        redis = redis_at(url)
        if redis is not None:
            closing.callback(redis.close)
        jobs = DurableJobs(
            place, peers=peers, collections=redis, run_callback=_on_a_thread, starts=False
        )
        closing.callback(jobs.close)
        recording.remember("durable", jobs.known_as)
        config = JobConfig(name=dag if name is None else name, members=members)
        with Console(stderr=True, quiet=quiet).status("submitting the job"):
            execution = durable_job(found, config, jobs.execute).execute()
        if wait:
            begun(execution)
        else:
            answer.give(execution_document(execution))
            if not json:
                typer.echo(execution.id)
            with existing_store(place) as store:
                if not quiet and _nobody_runs(store):
                    _say_what_is_missing(place)
            return
        console.print(f"job {execution.id} is submitted", highlight=False)
        store = closing.enter_context(existing_store(place))
        try:
            _wait(execution, store, jobs, place, is_quiet=quiet)
        except KeyboardInterrupt:
            jobs.close()
            answer.give(execution_document(execution, error=NOT_CANCELLED))
            _say_that_it_goes_on(execution.id, store, place)
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            answer.give(execution_document(execution, error=error_words(error)))
            raise
        show_metrics(execution, console)
        console.print(f"[green]completed[/] in {seconds_of(execution)}")
        answer.give(execution_document(execution))


def _wait(
    execution: Execution, store: Store, jobs: DurableJobs, place: str, *, is_quiet: bool
) -> None:
    """Until the job has ended; raises as `execution.result` does. Peers and coordinators of a
    folder that were there may go, so it is looked all the time whether someone runs the job."""
    from pyrite.durable.hosts.places import is_folder

    starts = is_folder(place)
    with Watch(execution, quiet=is_quiet) as watch:
        while True:
            if starts and _nobody_runs(store):
                jobs.start()
                starts = False
                count = sum(role == "peer" for role, _ in jobs.processes())
                if not is_quiet:
                    say(
                        "nobody runs the jobs of this folder, so this command starts a coordinator "
                        f"and {count} peers; they end with it"
                    )
            try:
                return execution.result(REFRESH_SECONDS)
            except TimeoutError:
                watch.look()


def _nobody_runs(store: Store) -> bool:
    from pyrite.durable.client.overview import coordinators

    return not coordinators(store) or not store.children("/pulse")


def _say_what_is_missing(place: str) -> None:
    from pyrite.durable.hosts.places import is_folder

    more = "somebody opens the folder, or runs" if is_folder(place) else "somebody runs"
    say(
        escape(
            f"nobody runs it now; it goes on when {more}:\n  {command('coordinator', place)}\n"
            f"  {command('peers', place)}"
        )
    )


def _say_that_it_goes_on(id: str, store: Store, place: str) -> None:
    if _nobody_runs(store):
        say(f"job {id} is not cancelled")
        _say_what_is_missing(place)
    else:
        say(f"job {id} is not cancelled: it goes on without this command")
    say(
        escape(
            f"to look at it, run: {command('jobs', place)}\n"
            f"to cancel it, run: {command('cancel', place, id)}"
        )
    )


def _on_a_thread(call: Callable[[], None]) -> None:
    threading.Thread(target=call, name="callback", daemon=True).start()
