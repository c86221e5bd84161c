"""Processes of the machine: starting, killing and watching them, and the files that they share."""
