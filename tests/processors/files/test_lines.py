"""Files that are read in parts give each line exactly once, wherever the parts begin and end."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from pyrite.processors.files import lines
from pyrite.processors.files.lines import blocks_of_lines, ranges_of

texts = st.text(alphabet="aä\u20ac\n\r", max_size=60).map(lambda text: text.encode())


def read_in_parts(files: list[bytes], count: int) -> list[str]:
    sizes = [(str(i), len(content)) for i, content in enumerate(files)]
    found = []
    for index in range(count):
        for part in ranges_of(sizes, index, count):
            for block in blocks_of_lines(io.BytesIO(files[int(part.path)]), part):
                found += block
    return found


@given(st.lists(texts, max_size=4), st.integers(1, 9))
def test_each_line_is_read_once_and_in_order(files: list[bytes], count: int) -> None:
    whole = [
        line.removesuffix("\n")
        for file in files
        for line in io.TextIOWrapper(io.BytesIO(file), "utf-8", newline=None)
    ]
    assert read_in_parts(files, count) == whole


def test_lines_longer_than_a_block_are_whole() -> None:
    content = b"x" * (3 * lines.BLOCK) + b"\nlast"
    assert [len(line) for line in read_in_parts([content], 1)] == [3 * lines.BLOCK, 4]
    assert [len(line) for line in read_in_parts([content], 5)] == [3 * lines.BLOCK, 4]
