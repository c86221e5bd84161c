"""Runs a DAG on Spark. The DAG is cut into sections at its distributed edges, and the cooperative
engine runs each section inside Spark tasks."""
