"""What is in the files of a job, and which of them it has written: without a run."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrite.workload.input.fingerprints import files as module
from pyrite.workload.input.fingerprints.files import (
    ABSENT,
    TOO_MANY,
    Files,
    JobFiles,
    settle,
    stamp_of,
)
from tests.workload.conftest import wait_until

contents = st.dictionaries(
    st.sampled_from("abcde"), st.sampled_from([ABSENT, b"1", b"2"]), max_size=5
)


@given(contents, contents, st.sets(st.sampled_from("abcde")))
def test_a_file_that_changed_was_written_by_the_job_or_disturbed(
    before: dict[str, bytes], after: dict[str, bytes], outputs: set[str]
) -> None:
    settled = settle(before, after, outputs)
    assert not set(settled.made) & set(settled.disturbed)
    for path, content in after.items():
        had, is_output = before.get(path, ABSENT), path in outputs
        assert (path in settled.disturbed) == (
            ABSENT not in (had, content) and had != content and not is_output
        )
        assert (path in settled.made) == (is_output or (had == ABSENT and content != ABSENT))


def test_a_file_that_is_written_again_at_once_is_read_again(tmp_path: Path) -> None:
    files = Files()
    path = tmp_path / "x"
    found = []
    for n in range(50):
        path.write_text(str(n % 2))
        found.append(files.content(str(path)))
    assert found[0] != found[1]
    assert found == found[:2] * 25


def test_a_folder_counts_by_names_and_contents_but_for_stores_and_caches(tmp_path: Path) -> None:
    def seen() -> tuple[bytes, bytes | None]:
        return Files().content(str(tmp_path)), stamp_of(str(tmp_path))

    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("1")
    first = seen()
    (tmp_path / "a" / "__pycache__").mkdir()
    (tmp_path / "a" / "self").symlink_to(tmp_path)
    (tmp_path / "a" / "self").unlink()
    assert seen() == first
    (tmp_path / "a" / "x").rename(tmp_path / "a" / "y")
    second = seen()
    (tmp_path / "store" / "segments").mkdir(parents=True)
    for name in ("journal.sqlite", "lock"):
        (tmp_path / "store" / name).touch()
    third = seen()
    (tmp_path / "store" / "lock").write_text("changed")
    assert first[0] != second[0]
    assert first[1] != second[1]
    assert seen() == third


def test_flags_and_installed_programs_among_arguments_do_not_count(tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text("echo 1")
    mentioned = ("/bin/sh", "-x", str(script), "\0")
    before = Files().contents(JobFiles(mentioned))
    assert list(before) == [str(script)]
    script.write_text("echo 2")
    assert Files().contents(JobFiles(mentioned)) != before


def test_other_content_with_the_same_size_and_time_is_read(tmp_path: Path) -> None:
    files = Files()
    path = tmp_path / "x"
    path.write_text("1")
    os.utime(path, (1, 1))
    changed = path.stat().st_ctime_ns
    wait_until(lambda: time.time_ns() - changed > 2 * module._SETTLED_NS)
    before = files.content(str(path)), stamp_of(str(path))
    path.write_text("2")
    os.utime(path, (1, 1))
    assert files.content(str(path)) != before[0]
    assert stamp_of(str(path)) != before[1]


def test_links_to_folders_are_followed_once(tmp_path: Path) -> None:
    data, target = tmp_path / "data", tmp_path / "target"
    data.mkdir()
    target.mkdir()
    (target / "x").write_text("1")
    (target / "back").symlink_to(target)
    (data / "link").symlink_to(target)
    before = Files().content(str(data)), stamp_of(str(data))
    (target / "x").write_text("22")
    assert Files().content(str(data)) != before[0]
    assert stamp_of(str(data)) != before[1]


def test_all_entries_of_a_folder_count_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MENTIONED_NAMES", 3)
    for name in "abcd":
        (tmp_path / name).touch()
    folder = str(tmp_path)
    assert Files().contents(JobFiles(mentioned=(folder,))) == {folder: TOO_MANY}
    before = Files().contents(JobFiles(mentioned=(folder + "/",), inputs=(folder,)))
    (tmp_path / "d").write_text("1")
    assert Files().contents(JobFiles(inputs=(folder,))) != before
    assert list(before) == [folder]
