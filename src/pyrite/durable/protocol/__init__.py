"""The protocol of durable jobs as pure code: no I/O, no threads, no clock of its own.

| where | what |
| --- | --- |
| `states.py` | the states of a peer and its legal transitions |
| `workflow.py` | the tasks of a job, their parts, edges and phases |
| `tree/` | the nodes of the store: their paths, their data, and the writes to them |
| `view/` | what the coordinator knows, with an index for each question that its rules ask |
| `coordinator/` | events and rules: an event becomes one entry of the log |
| `exactness/` | what peers decide: sentinels, ends of edges, commits and their fence |
"""
