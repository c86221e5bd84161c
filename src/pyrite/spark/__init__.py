"""A DAG on Spark: cut into stages at its distributed edges, run by the cooperative engine inside
Spark's tasks."""
