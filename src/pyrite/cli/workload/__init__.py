"""The commands for workloads: `pyrite workload run`, `status`, `log`, and so on."""

from __future__ import annotations

import typer

from pyrite.cli.workload import ending, looking, planning, pruning, running

app = typer.Typer(
    help="Run a DAG of jobs on workers; inspect, cancel and resume such runs.", no_args_is_help=True
)

app.command()(running.run)
app.command()(planning.plan)
app.command()(running.resume)
app.command()(looking.status)
app.command()(looking.log)
app.command()(looking.report)
app.command()(ending.cancel)
app.command()(pruning.prune)
