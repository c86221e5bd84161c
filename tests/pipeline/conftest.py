"""What pytest must not import to look for doctests."""

collect_ignore = ["revealed.py"]  # for type checkers; it would run jobs
