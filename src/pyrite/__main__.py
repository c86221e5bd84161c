"""`python -m pyrite` is `pyrite`."""

from pyrite.cli import app

app()
