"""What developers run: shell scripts, and the tools that make the documentation."""
