"""Parquet files: each row is an item, a dict."""

from pyrite.processors.files.parquet.format import Parquet, checked_codec, checked_schema

__all__ = ["Parquet", "checked_codec", "checked_schema"]
