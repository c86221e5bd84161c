"""Which section of a job Spark is at. Spark runs each section as a stage, but numbers its stages in
its own way; these functions find the sections among them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyrite.exchange.sections import Section
from pyrite.spark.liveness import is_connect

if TYPE_CHECKING:
    from pyspark import SparkStageInfo
    from pyspark.sql import SparkSession

logger = logging.getLogger("pyrite.spark")


def stages_of_group(spark: SparkSession, group: str) -> list[SparkStageInfo]:
    """What Spark knows of the stages of a job group, by their numbers; nothing if it does not
    tell: over Spark Connect, or because the session has ended."""
    if is_connect(spark):
        return []
    try:
        return _stages_of_group(spark.sparkContext.statusTracker(), group)
    except Exception:
        logger.debug("asking Spark for the stages of a job raised", exc_info=True)
        return []


def _stages_of_group(tracker: Any, group: str) -> list[SparkStageInfo]:
    stages: dict[int, Any] = {}
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            stages[stage] = tracker.getStageInfo(stage)
    return [stages[stage] for stage in sorted(stages) if stages[stage] is not None]


def progress_of(
    sections: Sequence[Section], known: Sequence[SparkStageInfo]
) -> list[tuple[str, int, int]]:
    """For each section that has begun: its vertices, how many of its tasks are done, and how many
    there are."""
    # A stage whose output is there already is listed again under another number, and never begins.
    begun = [
        stage
        for position, stage in enumerate(known)
        if stage.numCompletedTasks
        or not any(later.numCompletedTasks for later in known[position + 1 :])
    ]
    return [
        (section.label, stage.numCompletedTasks, stage.numTasks)
        for section, stage in zip(sections, begun)
    ]


def page_of(spark: SparkSession, group: str) -> str | None:
    """The address of Spark's web page of a job group: of its last job, or of all jobs if it has
    none yet. None if there is no such page."""
    if is_connect(spark):
        return None
    try:
        context = spark.sparkContext
        address = context.uiWebUrl
        jobs = context.statusTracker().getJobIdsForGroup(group) if address else ()
    except Exception:
        logger.debug("asking Spark for the page of a job raised", exc_info=True)
        return None
    if not address:
        return None
    return f"{address}/jobs/job/?id={max(jobs)}" if jobs else f"{address}/jobs/"


def section_of_number(
    sections: Sequence[Section], known: Sequence[SparkStageInfo], number: int
) -> Section | None:
    """The section of the stage with that number: a stage begins when those before it are done."""
    if all(stage.stageId != number for stage in known):
        return None
    done = sum(1 for stage in known if stage.stageId < number and stage.numCompletedTasks)
    return sections[done] if done < len(sections) else None
