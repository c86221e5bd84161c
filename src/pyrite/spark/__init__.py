"""Runs a DAG on Spark. The DAG is cut into stages at its distributed edges, and the cooperative
engine runs each stage inside Spark tasks."""
