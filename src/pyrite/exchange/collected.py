"""Named maps and lists inside a task whose output counts only when the job completes: what the task
adds is told to whoever completes the job, and put into the real map or list then."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, MutableMapping, MutableSequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from pyrite.context import CollectionKind, Collections
from pyrite.errors import ProcessorError


@dataclass(frozen=True, slots=True)
class Collected:
    """Items to add to a named map or list: a dict, or a list."""

    kind: CollectionKind
    name: str
    contents: Any

    def put(self, collections: Collections) -> None:
        if self.kind == "map":
            collections.map(self.name).update(self.contents)
        else:
            collections.list(self.name).extend(self.contents)


Tell: TypeAlias = Callable[[Collected], None]


class AddOnlyCollections:
    """Tells what is added, and refuses everything else. `who` says who may only add, as in `a task
    of a Spark job`."""

    def __init__(self, tell: Tell, who: str) -> None:
        self._tell = tell
        self._who = who

    def map(self, name: str) -> AddOnlyMap:
        return AddOnlyMap(name, self._tell, self._who)

    def list(self, name: str) -> AddOnlyList:
        return AddOnlyList(name, self._tell, self._who)


class _AddOnly:
    kind: CollectionKind

    def __init__(self, name: str, tell: Tell, who: str) -> None:
        self._name = name
        self._tell = tell
        self._who = who

    def _add(self, contents: Any) -> None:
        self._tell(Collected(self.kind, self._name, contents))

    def _refuse(self) -> NoReturn:
        raise ProcessorError(
            f"{self._who} can only add to the {self.kind} '{self._name}', which changes when the "
            f"job completes; to read it, use p.read_{self.kind}('{self._name}')"
        )


class AddOnlyMap(_AddOnly, MutableMapping[Any, Any]):
    kind = "map"

    def update(self, other: Any = (), /, **more: Any) -> None:
        self._add(dict(other, **more))

    def __setitem__(self, key: Any, value: Any) -> None:
        self.update({key: value})

    def __getitem__(self, key: Any) -> Any:
        self._refuse()

    def __delitem__(self, key: Any) -> None:
        self._refuse()

    def __iter__(self) -> Iterator[Any]:
        self._refuse()

    def __len__(self) -> int:
        self._refuse()


class AddOnlyList(_AddOnly, MutableSequence[Any]):
    kind = "list"

    def extend(self, values: Iterable[Any]) -> None:
        self._add(builtins.list(values))

    def append(self, value: Any) -> None:
        self.extend([value])

    def insert(self, index: int, value: Any) -> None:
        self._refuse()

    def __getitem__(self, index: Any) -> Any:
        self._refuse()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._refuse()

    def __delitem__(self, index: Any) -> None:
        self._refuse()

    def __iter__(self) -> Iterator[Any]:
        self._refuse()

    def __len__(self) -> int:
        self._refuse()
