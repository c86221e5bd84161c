"""The DataFrame that runs all sections of a job: a `mapInArrow` for each section, with an exchange
between each two.

The sections form a line. Rows that skip sections may bypass the sections between (`bypass`): the
later section reads the first exchange of these rows a second time. Spark must not compute that
exchange twice, so the plan is checked. If Spark would, the sections between forward the rows.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyrite.engine.fusion import step_of
from pyrite.exchange.deployment import Deployment
from pyrite.exchange.sections import Skip, skips_of
from pyrite.processors.spark import ReadSpark
from pyrite.spark.frames import packets_of
from pyrite.spark.packets import SCHEMA, SEED_COLUMNS
from pyrite.spark.tasks import SectionWork, section_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger("pyrite.spark")


def job_frame(
    spark: SparkSession,
    works: Sequence[SectionWork],
    suppliers: Mapping[str, Any],
    deployment: Deployment,
    *,
    bypass: bool = False,
) -> DataFrame:
    """The lazy DataFrame that runs all sections. Its rows are the messages of the tasks to the
    driver. `bypass` needs a classic session (not Spark Connect) without adaptive execution."""
    skips = skips_of([work.section for work in works]) if bypass else []
    if skips:
        frame = _JobFrame(spark, works, suppliers, deployment, skips).frame()
        if _reused_exchanges(frame) == len(skips):
            return frame
        logger.warning(
            "Spark's plan would compute an exchange twice for the rows that skip stages; these "
            "rows pass through all stages instead, which is slower"
        )
    return _JobFrame(spark, works, suppliers, deployment, []).frame()


class _JobFrame:
    def __init__(
        self,
        spark: SparkSession,
        works: Sequence[SectionWork],
        suppliers: Mapping[str, Any],
        deployment: Deployment,
        skips: Sequence[Skip],
    ) -> None:
        self._spark = spark
        self._works = works
        self._suppliers = suppliers
        self._deployment = deployment
        self._skips = skips
        self._members = works[0].topology.member_count

    def frame(self) -> DataFrame:
        exchanges: dict[int, DataFrame] = {}
        frame: DataFrame | None = None
        for work in self._works:
            section = work.section
            inputs = [] if frame is None else [frame]
            inputs += self._frames_read_by(work)
            if inputs and frame is None:
                # A task learns its member number from its first row, so each needs at least one.
                inputs.append(self._seeds())
            inputs += [
                _only(exchanges[skip.source + 1], skip.edges)
                for skip in self._skips
                if skip.destination == section.index
            ]
            if inputs:
                united = reduce(lambda one, two: one.unionAll(two), inputs)
                exchanges[section.index] = frame = united.repartitionById(self._members, "member")
                around = [s.edges for s in self._skips if s.source + 1 == section.index]
                if around:
                    frame = _without(frame, frozenset().union(*around))
                if section.sort_columns:
                    frame = frame.sortWithinPartitions(*section.sort_columns)
            else:
                frame = self._spark.range(0, self._members, 1, self._members)
            frame = frame.mapInArrow(section_function(work, self._deployment), SCHEMA)
        assert frame is not None
        return frame

    def _frames_read_by(self, work: SectionWork) -> list[DataFrame]:
        """The DataFrames that the vertices of a section read, as packets."""
        frames = []
        for vertex in work.section.vertices:
            step = step_of(self._suppliers[vertex.name])
            if isinstance(step, ReadSpark):
                edge = vertex.inbound[0].id
                packets = packets_of(self._members, edge, batches=step.batches)
                frames.append(step.df.mapInArrow(packets, SCHEMA))
        return frames

    def _seeds(self) -> DataFrame:
        members = self._members
        return self._spark.range(0, members, 1, members).selectExpr(*SEED_COLUMNS)


# Spark must not push this filter below the exchange: the two readers of the exchange have different
# filters, so Spark would then compute the exchange, and the sections before it, twice. Spark does
# not push down a filter with rand(). `coalesce` prevents that Spark infers the filter `edge is not
# null`, which it would push down.
_EDGE = "coalesce(edge, 0) + cast(rand(0) * 0 as int)"


def _only(exchange: DataFrame, edges: Collection[int]) -> DataFrame:
    return exchange.where(f"{_EDGE} in ({_listed(edges)})")


def _without(exchange: DataFrame, edges: Collection[int]) -> DataFrame:
    return exchange.where(f"{_EDGE} not in ({_listed(edges)})")


def _listed(edges: Collection[int]) -> str:
    return ", ".join(map(str, sorted(edges)))


def _reused_exchanges(frame: DataFrame) -> int:
    """How many times Spark's plan reads an exchange again instead of computing it again."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    return str(plan).count("ReusedExchange ")
