"""The journal of runs: a folder in which other processes, and later ones, see what ran.

`FOLDER/ID/run.jsonl` has the run: its row in a list, and its view; it is replaced, never changed.
`FOLDER/ID/history.json` has the rates of the vertices over time, `FOLDER/ID/log.jsonl` (and before
it `log.1.jsonl`) the log. A file `FOLDER/ID/cancel` is a request to cancel the run.
`FOLDER/known/` names the stores of workloads and the folders of durable jobs that were used.
"""

from pyrite.watching.journal.places import default_folder, folder_in_environment, runs_folder
from pyrite.watching.journal.reading import Journal

__all__ = ["Journal", "default_folder", "folder_in_environment", "runs_folder"]
