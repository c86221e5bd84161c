"""The command line: `pyrite demo`, `pyrite run`, `pyrite show`."""

from pyrite.cli.app import app

__all__ = ["app"]
