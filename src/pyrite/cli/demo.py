"""The demo: counts the words of a text that is part of the package."""

from __future__ import annotations

import inspect
import re
from importlib.resources import as_file, files

from rich.table import Table

from pyrite import Pipeline
from pyrite import processors as p
from pyrite.cli.progress import opened, run_to_end, seconds_of, show_metrics, where_time_went
from pyrite.cli.showing.answers import Answer
from pyrite.job import JobConfig


def word_count(path: str) -> Pipeline:
    pipe = Pipeline()
    lines = pipe.read_from(p.read_files(path), name="lines")
    words = lines.flat_map(words_of, name="words")
    long = words.filter(lambda word: len(word) >= 5, name="long words")
    counts = long.group_by(lambda word: word).count(name="count")
    counts.write_to(p.write_map("counts"), name="counts")
    return pipe


def words_of(line: str) -> list[str]:
    return re.findall(r"[a-z']+", line.lower())


def run(answer: Answer) -> None:
    console = answer.console
    with as_file(files("pyrite.cli") / "demo.txt") as path, opened(start_spark=True) as pyr:
        pipe = word_count(str(path))
        console.print("[bold]The pipeline[/]")
        console.print(inspect.getsource(word_count).rstrip(), markup=False)

        console.print("\n[bold]The DAG that it is compiled to[/]")
        console.print(pipe.to_dag().to_text(), markup=False, highlight=False)

        console.print("\n[bold]In this process, as a light job[/]")
        execution = run_to_end(pyr.new_light_job(pipe), answer)
        console.print(f"completed in {seconds_of(execution)}")
        light = pyr.map("counts").copy()
        pyr.map("counts").clear()

        console.print("\n[bold]On Spark, as a normal job[/]")
        execution = run_to_end(pyr.new_job(pipe, JobConfig(name="word-count")), answer)
        console.print(f"completed in {seconds_of(execution)}{where_time_went(execution)}")
        show_metrics(execution, console)

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
