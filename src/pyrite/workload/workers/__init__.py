"""What runs jobs: persistent workers, on this machine or launched on others, and executors."""
