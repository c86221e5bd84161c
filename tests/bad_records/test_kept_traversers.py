"""Processors of one's own that keep the traverser of an item which has raised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import pyrite
from pyrite import AbstractProcessor, JobFailed, Pipeline, Retry


class Keeps(AbstractProcessor):
    """Refuses 2 once."""

    rest: Iterator[Any] | None = None
    tries = 0

    def try_process_0(self, item: int) -> bool | None:
        if self.rest is None:
            self.rest = self._parts(item)
        if not self.emit_cooperatively(self.rest):
            return False
        self.rest = None
        return None

    def _parts(self, item: int) -> Iterator[int]:
        if item == 2 and not self.tries:
            self.tries += 1
            raise ConnectionError
        yield item


class Forgets(Keeps):
    def try_process_0(self, item: int) -> bool | None:
        try:
            return super().try_process_0(item)
        except ConnectionError:
            self.rest = None
            raise


def run(own: type[Keeps], **options: Any) -> list[int]:
    return Pipeline().read_from([1, 2, 3, 4]).process(own, **options).collect()


@pytest.mark.parametrize("options", [{"retry": Retry(3)}, {"on_error": pyrite.skip()}])
def test_a_traverser_that_is_used_again_fails_the_job(options: dict[str, Any]) -> None:
    with pytest.raises(JobFailed, match=r"kept the traverser .*flat_mapper"):
        run(Keeps, **options)


def test_a_processor_that_forgets_it_is_tried_again() -> None:
    assert run(Forgets, retry=Retry(3)) == [1, 2, 3, 4]


def test_a_processor_that_forgets_it_goes_on_with_the_next_item() -> None:
    assert run(Forgets, on_error=pyrite.skip()) == [1, 3, 4]
