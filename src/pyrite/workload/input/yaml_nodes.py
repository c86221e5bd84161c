"""A YAML file as nodes that know their lines. Whoever reads them collects all problems of the file,
each with its line."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from pyrite.errors import InvalidWorkload
from pyrite.workload.input.jobs.secrets import with_secrets

# The loader in C is ten times as fast.
Loader: Any = with_secrets(getattr(yaml, "CSafeLoader", yaml.SafeLoader))

_TEXT = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"


class YamlFile:
    """The nodes of a file, and its problems so far, which call the file `name`. Raises
    InvalidWorkload if it cannot be read, or is not YAML."""

    def __init__(self, path: Path, name: str) -> None:
        self._name = name
        self._problems: list[tuple[int, str]] = []
        try:
            self._data = path.read_bytes()
            self._loader = Loader(self._data)
            self.root: Node | None = self._loader.get_single_node()
        except OSError as error:
            raise InvalidWorkload([f"cannot read '{name}': {error.strerror}"]) from None
        except yaml.MarkedYAMLError as error:
            raise InvalidWorkload([self._not_yaml(error)]) from None
        except yaml.YAMLError as error:
            raise InvalidWorkload([f"'{name}' is not YAML: {error}"]) from None
        if self.root is not None:
            self._find_duplicates(self.root)

    # Problems

    def say(self, problem: str, at: Node | None = None) -> None:
        """Adds a problem, with the line of a node if one is given."""
        line = at.start_mark.line + 1 if at is not None else 0
        place = f"'{self._name}', line {line}: " if line else f"'{self._name}': "
        self._problems.append((line, place + problem))

    def say_duplicate(self, name: str, first: Node, at: Node) -> None:
        self.say(f"'{name}' is already in line {first.start_mark.line + 1}", at)

    @property
    def problems(self) -> list[str]:
        """The problems in the order of their lines, each once. Those without a line come last."""
        in_order = sorted(self._problems, key=lambda problem: problem[0] or float("inf"))
        return list(dict.fromkeys(text for _, text in in_order))

    # Content

    def value(self, node: Node) -> Any:
        """The plain Python value of a node; None if YAML cannot make one."""
        try:
            return self._loader.construct_object(node, deep=True)
        except yaml.MarkedYAMLError as error:
            self._problems.append((0, self._not_yaml(error)))
            return None
        except ValueError as error:  # of a tag such as !secret
            self.say(str(error), node)
            return None

    def pairs(self, node: MappingNode) -> list[tuple[Node, Node]]:
        """The nodes of the keys and values of a mapping, with those that the key `<<` adds."""
        if any(key.tag == _MERGE for key, _ in node.value):
            self._loader.flatten_mapping(node)
        return list(node.value)

    def entries(self, node: MappingNode) -> dict[str, tuple[ScalarNode, Node]]:
        """The nodes of the keys and values of a mapping by the texts of the keys, which are to be
        names."""
        found = {}
        for key, value in self.pairs(node):
            if isinstance(key, ScalarNode):
                found[key.value] = (key, value)
            else:
                self.say("a key must be a name, not a list or a mapping", key)
        return found

    def name(self, node: Node, what: str) -> str | None:
        """The text of a node that is to be a name, such as the id of a job. Anything that YAML
        reads as another value than the text is a problem."""
        if not isinstance(node, ScalarNode):
            self.say(f"{what} must be a text; got {_kind(node)}", node)
            return None
        if node.tag != _TEXT:
            value = self.value(node)
            if type(value) is not int or str(value) != node.value:
                self.say(f"{what}: {_read_as(node, value)}", node)
                return None
        if not node.value:
            self.say(f"{what} is empty", node)
        return node.value or None

    def words(self, node: SequenceNode) -> list[Any]:
        """The values of a list of words, such as a program and its arguments. Numbers and dates
        stay as they are written: 1.10 is not 1.1. Booleans may be meant as words or not, so they
        are a problem."""
        return [self.word(item) for item in node.value]

    def word(self, node: Node) -> Any:
        value = self.value(node)
        if isinstance(node, ScalarNode) and (isinstance(value, bool) or value is None):
            self.say(_read_as(node, value), node)
            return node.value
        return node.value if isinstance(value, (int, float, datetime.date)) else value

    def check_known(
        self, names: Iterable[str], known: Sequence[str], nodes: Any, *, what: str
    ) -> None:
        """Says which names are unknown. `what` is the start of the sentence: 'there is'."""
        for name in names:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f"did you mean '{near[0]}:'?" if near else f"known are {', '.join(known)}"
                self.say(f"{what} the unknown key '{name}:'; {hint}", nodes[name][0])

    def _not_yaml(self, error: yaml.MarkedYAMLError) -> str:
        mark = error.problem_mark or error.context_mark
        place = f", line {mark.line + 1}," if mark is not None else ""
        line = self._data.splitlines()[mark.line : mark.line + 1] if mark is not None else []
        indent = line[0][: len(line[0]) - len(line[0].lstrip())] if line else b""
        advice = "; indent with spaces, not with tabs" if b"\t" in indent else ""
        return f"'{self._name}'{place} is not YAML: {error.problem or error.context}{advice}"

    def _find_duplicates(self, root: Node) -> None:
        """YAML libraries keep the last of several equal keys and say nothing."""
        waiting, seen = [root], {id(root)}
        while waiting:
            node = waiting.pop()
            below: Iterable[Node] = ()
            if isinstance(node, MappingNode):
                first: dict[tuple[str, str], Node] = {}
                for key, _ in node.value:
                    if type(key) is ScalarNode:
                        earlier = first.setdefault((key.tag, key.value), key)
                        if earlier is not key:
                            self.say_duplicate(key.value, earlier, key)
                below = [value for _, value in node.value]
            elif isinstance(node, SequenceNode):
                below = node.value
            for child in below:
                if type(child) is not ScalarNode and id(child) not in seen:
                    seen.add(id(child))
                    waiting.append(child)


def _read_as(node: ScalarNode, value: Any) -> str:
    if value is None:
        kind = "nothing"
    elif isinstance(value, datetime.date):
        kind = "a date"
    else:
        kind = repr(value)
    if not node.value:
        return "a value is missing here"
    return f'YAML reads `{node.value}` as {kind}; write "{node.value}" in quotes'


def _kind(node: Node) -> str:
    return "a mapping" if isinstance(node, MappingNode) else "a list"
