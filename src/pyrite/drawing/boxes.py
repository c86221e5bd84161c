"""What all pictures of a graph are made from: boxes and arrows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Box:
    """`note` stands below the name, in as many lines as it has. `color` fills the box."""

    name: str
    note: str = ""
    color: str = ""


@dataclass(frozen=True, slots=True)
class Arrow:
    source: str
    destination: str
    label: str = ""

    @property
    def crosses_members(self) -> bool:
        return self.label.startswith("distributed")
