from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyrite.workload.input.fingerprints import NO_FINGERPRINT
from pyrite.workload.storage.cleanup_queue import (
    INLINE_BYTES,
    Ending,
    SegmentWriter,
    end_of,
    head,
    read_error,
    read_records,
    read_result,
)
from pyrite.workload.storage.encoding import Encoded, Kind, decode, encode


def ending(job: int, result: Encoded | None = None, error: str = "") -> Ending:
    return Ending(
        job, 1, NO_FINGERPRINT, 1.0, 2.0, result, error=error, traceback="tb" if error else ""
    )


def test_appended_records_can_be_read(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path / "s", plan=1)
    endings = [ending(1, encode({"a": 1})), ending(2, error="went wrong"), ending(3, encode(None))]
    first, second, third = (head(writer.append(each)) for each in endings)
    assert [*read_records(tmp_path / "s")] == [first, second, third]
    assert decode(read_result(tmp_path / "s", first.offset)) == {"a": 1}
    assert read_error(tmp_path / "s", second.offset) == ("went wrong", "tb")
    assert decode(read_result(tmp_path / "s", third.offset)) is None
    assert [record.succeeded for record in (first, second, third)] == [True, False, True]


def test_a_large_result_has_a_file_of_its_own(tmp_path: Path) -> None:
    record = head(
        SegmentWriter(tmp_path / "s", plan=1).append(
            ending(1, Encoded(Kind.PICKLE, bytes(INLINE_BYTES + 1)))
        )
    )
    assert (tmp_path / "s").stat().st_size < 1000
    assert len(read_result(tmp_path / "s", record.offset).data) == INLINE_BYTES + 1
    next(tmp_path.glob("*.pickle")).unlink()
    with pytest.raises(FileNotFoundError):
        read_result(tmp_path / "s", record.offset)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=50), min_size=1, max_size=5), st.integers(1, 60))
def test_a_truncated_segment_still_gives_its_complete_records(
    tmp_path: Path, payloads: list[bytes], cut: int
) -> None:
    path = tmp_path / "s"
    path.unlink(missing_ok=True)
    writer = SegmentWriter(path, plan=1)
    records = [
        head(writer.append(ending(n, Encoded(Kind.PICKLE, data))))
        for n, data in enumerate(payloads)
    ]
    writer.close()
    left = max(0, path.stat().st_size - cut)
    os.truncate(path, left)
    assert list(read_records(path)) == [record for record in records if end_of(record) <= left]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_record_is_not_read_as_a_result(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "s"
    path.unlink(missing_ok=True)
    writer = SegmentWriter(path, plan=1)
    record = head(writer.append(ending(1, Encoded(Kind.PICKLE, b"some bytes of a result"))))
    writer.close()
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    assert list(read_records(path)) == []
    with pytest.raises(OSError, match=r"record at|damaged"):
        read_result(path, record.offset)


def test_a_partly_written_record_is_removed_if_the_disk_is_full(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path / "s", plan=1)
    writer.append(ending(1, encode("first")))
    size = (tmp_path / "s").stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            writer.append(ending(2, Encoded(Kind.PICKLE, bytes(1000))))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    writer.append(ending(3, encode("third")))
    assert [record.job for record in read_records(tmp_path / "s")] == [1, 3]


VALUES = [
    None,
    0,
    1.5,
    "text",
    b"bytes",
    True,
    (1, [2, {3: {4}}]),
    Path(os.__file__),
    ValueError("x").args,
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_results_come_back_as_they_were(value: object) -> None:
    back = decode(encode(value))
    assert back == value
    assert type(back) is type(value)
