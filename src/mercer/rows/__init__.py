"""Rows in memory, in files or with Dask, and the loop that sums over them wherever they are."""

from mercer.blocks import Rows
from mercer.rows.answers import wherever_rows_are
from mercer.rows.at_hand import RowsOnDisk, rows_at_hand, some_rows_of
from mercer.rows.cluster import Cluster, cluster_of
from mercer.rows.dask_collections import DaskRows
from mercer.rows.drawn import drawn_rows
from mercer.rows.files import FileRows, open_rows
from mercer.rows.labels import class_numbers, drawn_with_classes, numbered_classes, some_of_rare_classes
from mercer.rows.loop import gather_over_rows, map_over_rows, of_each_part, sum_over_rows
from mercer.rows.sources import MappedRows, RowNumbers
from mercer.rows.tables import FileTable, category_columns, frame_of, table_rows
from mercer.rows.validation import is_elsewhere, rows_brought_here, validated_column, validated_rows

__all__ = [
    "Cluster",
    "DaskRows",
    "FileRows",
    "MappedRows",
    "FileTable",
    "RowNumbers",
    "Rows",
    "RowsOnDisk",
    "category_columns",
    "class_numbers",
    "cluster_of",
    "drawn_rows",
    "drawn_with_classes",
    "frame_of",
    "gather_over_rows",
    "is_elsewhere",
    "map_over_rows",
    "numbered_classes",
    "of_each_part",
    "open_rows",
    "rows_at_hand",
    "rows_brought_here",
    "some_of_rare_classes",
    "some_rows_of",
    "sum_over_rows",
    "table_rows",
    "validated_column",
    "validated_rows",
    "wherever_rows_are",
]
