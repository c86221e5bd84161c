"""Makes events of OpenLineage's client from records, and emits them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from openlineage.client import OpenLineageClient
    from openlineage.client.event_v2 import (
        InputDataset,
        Job,
        OutputDataset,
        Run,
        RunEvent,
        RunState,
    )
    from openlineage.client.facet_v2 import (
        error_message_run,
        input_statistics_input_dataset,
        job_type_job,
        output_statistics_output_dataset,
        parent_run,
        processing_engine_run,
        schema_dataset,
        source_code_location_job,
        sql_job,
    )

from pyrite.telemetry.openlineage.datasets import Dataset, datasets_of, query_of
from pyrite.telemetry.openlineage.facts import Facts, input_facts, output_facts, with_rows
from pyrite.telemetry.openlineage.records import Parent, Record
from pyrite.telemetry.openlineage.source import source_of
from pyrite.telemetry.reachable import check_reachable
from pyrite.version import __version__

_PRODUCER = f"urn:pyrite:{__version__}"


def emitting() -> Callable[[list[Record]], None]:
    """What emits events, on the calling thread, where the variables and files of OpenLineage's
    client say. Raises if they cannot be emitted."""
    return _Emitting(_client()).emit


def _client() -> OpenLineageClient:
    """It adds variables to the environment, which the processes that this one starts would have as
    well."""
    before = set(os.environ)
    try:
        return OpenLineageClient()
    finally:
        for name in set(os.environ) - before:
            if name.startswith("OPENLINEAGE__"):
                os.environ.pop(name, None)


class _Emitting:
    def __init__(self, client: OpenLineageClient) -> None:
        self._client = client
        self._inputs: dict[str, list[tuple[Dataset, Facts]]] = {}
        """Of runs that are running, as they were when these began."""

    def emit(self, records: list[Record]) -> None:
        for record in records:
            event = self._event(record)
            check_reachable(str(getattr(self._client.transport, "url", "") or ""))
            self._client.emit(event)

    def _event(self, record: Record) -> RunEvent:
        inputs, outputs = self._datasets(record)
        return RunEvent(
            eventType=RunState[record.type],
            eventTime=datetime.fromtimestamp(record.time, UTC).isoformat(),
            run=Run(runId=record.run, facets=_run_facets(record)),
            job=Job(namespace=record.namespace, name=record.job, facets=_job_facets(record)),
            inputs=inputs,
            outputs=outputs,
            producer=_PRODUCER,
        )

    def _datasets(self, record: Record) -> tuple[list[InputDataset], list[OutputDataset]]:
        if record.dag is None:
            return [], []
        found = datasets_of(record.dag)
        inputs = self._inputs.pop(record.run, None)
        if inputs is None:
            inputs = [(each, input_facts(each)) for each in found if not each.is_output]
        outputs = [(each, Facts()) for each in found if each.is_output]
        if record.type == "START":
            self._inputs[record.run] = inputs
        else:
            inputs = [(each, with_rows(facts, each, record.metrics)) for each, facts in inputs]
        if record.type == "COMPLETE":
            outputs = [
                (each, with_rows(output_facts(each, record.execution), each, record.metrics))
                for each, _ in outputs
            ]
        return (
            [_input(dataset, facts) for dataset, facts in _once(inputs)],
            [_output(dataset, facts) for dataset, facts in _once(outputs)],
        )


def _once(found: list[tuple[Dataset, Facts]]) -> list[tuple[Dataset, Facts]]:
    """Each dataset once, if several vertices read or write it."""
    together: dict[Any, tuple[Dataset, Facts]] = {}
    for dataset, facts in found:
        before = together.get(dataset.name)
        if before is not None:
            facts = Facts(
                _sum(before[1].rows, facts.rows),
                _sum(before[1].bytes, facts.bytes),
                _sum(before[1].files, facts.files),
                before[1].columns or facts.columns,
            )
        together[dataset.name] = dataset, facts
    return list(together.values())


def _sum(one: int | None, other: int | None) -> int | None:
    return (one or 0) + (other or 0) if one is not None or other is not None else None


def _input(dataset: Dataset, facts: Facts) -> InputDataset:
    statistics = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
        rowCount=facts.rows, size=facts.bytes, fileCount=facts.files
    )
    return InputDataset(
        namespace=dataset.name.namespace,
        name=dataset.name.name,
        facets=_schema(facts),
        inputFacets={"inputStatistics": statistics} if _has_counts(facts) else {},
    )


def _output(dataset: Dataset, facts: Facts) -> OutputDataset:
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=facts.rows, size=facts.bytes, fileCount=facts.files
    )
    return OutputDataset(
        namespace=dataset.name.namespace,
        name=dataset.name.name,
        facets=_schema(facts),
        outputFacets={"outputStatistics": statistics} if _has_counts(facts) else {},
    )


def _has_counts(facts: Facts) -> bool:
    return any(each is not None for each in (facts.rows, facts.bytes, facts.files))


def _schema(facts: Facts) -> dict[str, Any]:
    if not facts.columns:
        return {}
    fields = [
        schema_dataset.SchemaDatasetFacetFields(name=name, type=type)
        for name, type in facts.columns
    ]
    return {"schema": schema_dataset.SchemaDatasetFacet(fields=fields)}


def _run_facets(record: Record) -> dict[str, Any]:
    facets: dict[str, Any] = {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
            version=__version__, name="pyrite", openlineageAdapterVersion=__version__
        )
    }
    if record.parent is not None:
        facets["parent"] = _parent(record.parent, record.root or record.parent)
    if record.failure is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=record.failure.message,
            programmingLanguage="PYTHON",
            stackTrace=record.failure.traceback or None,
        )
    return facets


def _parent(parent: Parent, root: Parent) -> parent_run.ParentRunFacet:
    return parent_run.ParentRunFacet(
        run=parent_run.Run(runId=parent.run),
        job=parent_run.Job(namespace=parent.namespace, name=parent.job),
        root=parent_run.Root(
            run=parent_run.RootRun(runId=root.run),
            job=parent_run.RootJob(namespace=root.namespace, name=root.job),
        ),
    )


def _job_facets(record: Record) -> dict[str, Any]:
    facets: dict[str, Any] = {
        "jobType": job_type_job.JobTypeJobFacet(
            processingType="BATCH", integration="PYRITE", jobType=record.kind
        )
    }
    if record.source is not None:
        source = source_of(record.source)
        facets["sourceCodeLocation"] = source_code_location_job.SourceCodeLocationJobFacet(
            type=source.type,
            url=source.url,
            repoUrl=source.repository,
            path=source.path,
            version=source.version,
            branch=source.branch,
        )
    query = None if record.dag is None else query_of(record.dag)
    if query is not None:
        facets["sql"] = sql_job.SQLJobFacet(query=query)
    return facets
