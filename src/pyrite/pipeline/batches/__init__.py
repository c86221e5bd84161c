"""The part of pipelines that works on batches of rows."""
