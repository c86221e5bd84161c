"""Files as sources and sinks: text, CSV, JSON lines and Parquet, of this machine or by URL."""

from pyrite.processors.files.reading import ReadFiles, read_files
from pyrite.processors.files.writing import WriteFiles, write_files

__all__ = ["ReadFiles", "WriteFiles", "read_files", "write_files"]
