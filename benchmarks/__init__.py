"""Speed: Pyrite against a plain loop, a thread pool and other tools, each ratio taken within one
run on one machine."""
