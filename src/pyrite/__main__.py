"""`python -m pyrite` is `pyrite`."""

from pyrite.cli import main

main()
