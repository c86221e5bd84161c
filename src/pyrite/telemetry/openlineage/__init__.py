"""Lineage for OpenLineage: what each run reads and writes. `naming.py` names datasets,
`datasets.py` finds them in a DAG, `facts.py` looks at them, `source.py` finds the source code;
`lineage.py` is told of runs; `events.py` makes the events of the client and sends them, in the
background."""
