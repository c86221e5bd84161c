"""What gives the jobs to the workers and records how they end."""
