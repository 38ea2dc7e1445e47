"""How many rows clusterings learn from where rows are elsewhere; all rows get their cluster by `predict`."""

# Clusters are seen in so many rows, if at all, and their graph fits into memory.
MOST_ROWS_BROUGHT = 20_000
