"""TPC-H queries 1, 3, 13 and 18: as pipelines, as DAGs by hand, and in SQL; and tables to run them
on. Tests and benchmarks share them."""
