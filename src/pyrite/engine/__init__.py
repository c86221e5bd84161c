"""The cooperative engine: runs a DAG's processors as tasklets, in turn, on a few threads of this
process."""
