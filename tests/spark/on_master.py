"""A program that runs jobs on the Spark master with the given URL, and prints their results."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass

import pyrite
from pyrite import DAG, JobConfig, JobFailed, between
from pyrite import processors as p
from tests.spark.test_jobs import LINES, word_count


@dataclass(frozen=True)
class Record:
    """A class of the script itself, which workers cannot import."""

    name: str


def main(master: str) -> None:
    conf = (
        {}
        if master.startswith("sc://")
        else {"spark.ui.enabled": "false", "spark.executor.memory": "512m"}
    )
    with pyrite.instance(spark_master=master, spark_conf=conf) as pyr:
        pyr.new_job(word_count(LINES), JobConfig(members=3)).execute().result(120)
        assert dict(pyr.map("counts")) == dict(
            Counter(word for line in LINES for word in line.lower().split())
        )
        records = DAG()
        source = records.vertex("source", p.read_items([Record("a"), Record("b")]))
        named = records.vertex("named", p.map(lambda record: record.name))
        records.edge(between(source, named).distributed()).edge(
            between(named, records.vertex("sink", p.write_list("names")))
        )
        pyr.new_job(records, JobConfig(members=2)).execute().result(120)
        assert sorted(pyr.list("names")) == ["a", "b"]
        bad = DAG()
        bad.edge(
            between(bad.vertex("a", p.read_items([1, 0])), bad.vertex("b", p.map(lambda n: 1 // n)))
        )
        failed = pyr.new_job(bad, JobConfig(members=2)).execute().exception(120)
        assert isinstance(failed, JobFailed)
        assert (failed.vertex, failed.item, type(failed.__cause__)) == ("b", 0, ZeroDivisionError)
    print(f"all good on {master}")


if __name__ == "__main__":
    main(sys.argv[1])
