"""Named maps and lists that live in the folder of an embedded instance."""
