"""Persistent workers that a launcher starts, and their connection to the master."""
