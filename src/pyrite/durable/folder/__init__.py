"""The folder of an embedded instance: what is where in it, and who is alive."""
