"""Pipelines: the typed way to write a DAG. This room only makes DAGs; `run.py` runs them."""

from pyrite.pipeline import agg
from pyrite.pipeline.batches.grouped import BatchGrouped
from pyrite.pipeline.batches.stage import BatchStage
from pyrite.pipeline.grouped import Grouped
from pyrite.pipeline.looking.preview import Preview
from pyrite.pipeline.looking.verification import Verification
from pyrite.pipeline.pipeline import Pipeline
from pyrite.pipeline.stage import Stage

__all__ = [
    "BatchGrouped",
    "BatchStage",
    "Grouped",
    "Pipeline",
    "Preview",
    "Stage",
    "Verification",
    "agg",
]
