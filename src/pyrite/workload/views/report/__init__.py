"""The report of a run: one HTML file with the summary, the graph, the time chart, the table of the
jobs, and the logs of the failures. It loads nothing from the network, and its size is bounded."""
