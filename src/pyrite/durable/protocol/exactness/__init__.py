"""What a peer decides while it works on a part: whether a sentinel is the end, and whether a commit
counts."""
