"""The commands of jobs: what they call, and how they and their arguments become bytes."""
