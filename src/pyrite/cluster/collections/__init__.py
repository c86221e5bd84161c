"""Named maps and lists in the memory of members."""
