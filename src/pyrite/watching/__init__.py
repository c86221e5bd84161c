"""What those see who watch a run: views of one moment, and who is told that a run has begun."""
