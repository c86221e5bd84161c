"""Groups batches of rows by the values of columns: `grouping.Grouping` does it, by the kernels of
Arrow or Polars, in memory or with files, from rows or from the states of other groupings."""
