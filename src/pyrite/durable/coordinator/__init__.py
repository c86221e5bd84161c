"""The coordinator of durable jobs as a program, around the rules in `protocol/coordinator`.

| where | what |
| --- | --- |
| `newcomers.py` | which children of a node are new |
| `upkeep.py` | old nodes are deleted, and jobs say what they wait for |
| `stumbles.py` | what happens to an event that the rules cannot handle |
| `telling.py` | what a coordinator tells people |
| `closing.py` | deletes the queues of ended jobs, on a thread of its own |
| `orphans.py` | finds what clients left that died while they submitted a job |
| `leader.py` | leads: one event at a time |
| `program.py` | stands for election, leads, and begins anew |
"""
