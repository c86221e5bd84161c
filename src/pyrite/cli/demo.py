"""The demo: counts the words of a text that is part of the package."""

from __future__ import annotations

import re
import time
from importlib.resources import as_file, files

from rich.console import Console
from rich.table import Table

from pyrite import processors as p
from pyrite.cli.progress import duration, metrics_table, opened, run_to_end, where_time_went
from pyrite.dag import DAG, between
from pyrite.job import JobConfig

LEAST_LETTERS = 5


def word_count(path: str) -> DAG:
    """Counts words: first on each member separately, then the totals of all members."""
    dag = DAG()
    lines = dag.vertex("lines", p.read_files(path))
    words = dag.vertex("words", p.flat_map(lambda line: re.findall(r"[a-z']+", line.lower())))
    long_words = dag.vertex("long words", p.filter(lambda word: len(word) >= LEAST_LETTERS))
    count = dag.vertex(
        "count", p.group_and_accumulate(key=lambda w: w, initial=0, accumulate=lambda n, w: n + 1)
    )
    total = dag.vertex(
        "total",
        p.group_and_accumulate(key=lambda kv: kv[0], initial=0, accumulate=lambda n, kv: n + kv[1]),
    )
    counts = dag.vertex("counts", p.write_map("counts"))
    dag.edge(between(lines, words))
    dag.edge(between(words, long_words))
    dag.edge(between(long_words, count).partitioned(key=lambda w: w))
    dag.edge(between(count, total).distributed().partitioned(key=lambda kv: kv[0]))
    dag.edge(between(total, counts))
    return dag


def run(console: Console) -> None:
    with as_file(files("pyrite.cli") / "demo.txt") as path, opened(start_spark=True) as pyr:
        dag = word_count(str(path))
        console.print("[bold]The DAG[/]")
        console.print(dag.to_text(), markup=False, highlight=False)

        console.print("\n[bold]In this process, as a light job[/]")
        started = time.perf_counter()
        execution = run_to_end(pyr.new_light_job(dag), console)
        console.print(f"completed in {duration(time.perf_counter() - started)}")
        light = pyr.map("counts").copy()
        pyr.map("counts").clear()

        console.print("\n[bold]On Spark, as a normal job[/]")
        started = time.perf_counter()
        execution = run_to_end(pyr.new_job(dag, JobConfig(name="word-count")), console)
        console.print(
            f"completed in {duration(time.perf_counter() - started)}{where_time_went(execution)}"
        )
        console.print(metrics_table(execution))

        counts = pyr.map("counts").copy()
        console.print(
            f"\n[bold]Both gave {'the same' if counts == light else 'DIFFERENT'} results. The most "
            "frequent words:[/]"
        )
        table = Table(box=None, header_style="dim", pad_edge=False)
        table.add_column("word")
        table.add_column("times", justify="right")
        for word, times in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))[:10]:
            table.add_row(word, str(times))
        console.print(table)
