"""What type checkers read here, and nobody runs."""

collect_ignore = ["rejected.py", "revealed.py"]
