"""Displays that are drawn again in place until what they show has ended."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from pyrite.watching.notebook.live import REFRESH_SECONDS, keep_drawn

NOTEBOOK = [
    """
import threading
import pyrite
from pyrite import Pipeline, processors as p
go = threading.Event()
pipe = Pipeline()
pipe.read_from([1, 2]).map(lambda n: go.wait(30) and n, name="waits").write_to(p.noop())
execution = pyrite.instance().new_light_job(pipe).execute()
execution
""",
    """
go.set()
execution.result(30)
[thread.join(30) for thread in threading.enumerate() if thread.name == "notebook display"]
""",
]


def drawn(pages: list[str], ends: list[bool]) -> tuple[list[str], list[float]]:
    """What is drawn while the pages are shown one after the other, and the pauses."""
    found: list[str] = []
    pauses: list[float] = []
    following: Iterator[str] = iter(pages)

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        return ends[len(pauses) - 1]

    keep_drawn(
        lambda: "text",
        lambda: next(following),
        wait,
        lambda bundle: found.append(bundle["text/html"]),
    )
    return found, pauses


def test_it_is_drawn_about_once_a_second_and_a_last_time_at_the_end() -> None:
    found, pauses = drawn(["1", "2", "end"], [False, False, True])
    assert found == ["1", "2", "end"]
    assert pauses == [REFRESH_SECONDS] * 3


def test_what_looks_the_same_is_not_drawn_again() -> None:
    assert drawn(["1", "1", "2", "2"], [False, False, False, True])[0] == ["1", "2"]


def test_without_a_notebook_ipython_is_not_imported() -> None:
    code = (
        "import sys, pyrite\nfrom pyrite import DAG\nDAG()._repr_mimebundle_()\n"
        "assert not any(name.partition('.')[0] == 'IPython' for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_kernel_shows_an_execution_and_updates_it_in_place() -> None:
    import nbclient
    import nbformat

    cells = [nbformat.v4.new_code_cell(source) for source in NOTEBOOK]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert output.output_type == "display_data"
    assert ">completed</span>" in output.data["text/html"]
    assert ": completed>" in output.data["text/plain"]
