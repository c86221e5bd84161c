"""TPC-H at scale factor 1, by batches of rows and by items: Pyrite next to Polars and to DataFrames
of Spark, on the same Parquet files and two cores."""
