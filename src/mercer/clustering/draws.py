"""The number of rows that clusterings learn from if the rows are in files or in Dask; `predict` accepts all rows."""

# This many rows show the clusters if there are any, and their graph fits into memory.
MOST_ROWS_BROUGHT = 20_000
