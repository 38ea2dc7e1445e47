"""Tables with columns of any kind, in files or with Dask: an encoder makes numbers of their objects."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercer.exceptions import invalid_parameter
from mercer.rows.cluster import Cluster
from mercer.rows.dask_collections import DaskRows, is_dask
from mercer.rows.files import FileRows
from mercer.rows.pieces import FORMATS


class FileTable(FileRows):
    """Columns of Parquet or Arrow files as objects, which may be categories and missing values."""

    names: tuple[str, ...]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.dtype = np.dtype(object)

    def _array(self, batch: Any, piece: int, places: np.ndarray) -> np.ndarray:
        keys = self.pieces[piece].keys
        rows = np.empty((batch.num_rows, len(self.names)), object)
        for j, name in enumerate(self.names):
            rows[:, j] = keys[name] if name in keys else batch.column(name).to_pandas().astype(object)
        return rows


class DaskTable(DaskRows):
    """The rows of a Dask frame as objects."""

    names: tuple[str, ...]

    def __init__(self, frame: Any, client: Any = None) -> None:
        self.cluster = Cluster(client)
        self.names = tuple(str(column) for column in frame.columns)
        self.array = frame.astype(object).to_dask_array(lengths=True).rechunk({1: -1})
        self.shape, self.dtype = tuple(int(size) for size in self.array.shape), np.dtype(object)


def table_rows(X: Any) -> FileTable | DaskTable:
    """Return rows that are elsewhere as a table of objects."""
    if isinstance(X, FileRows) and not X.is_column:
        client = None if X.cluster is None else X.cluster.client
        return FileTable(X.pieces, X.kinds, client=client, checkpoint=X.checkpoint)
    if is_dask(X) and hasattr(X, "columns"):
        return DaskTable(X)
    raise invalid_parameter(
        "X",
        type(X).__name__,
        "a frame, rows of files, or a Dask frame",
        "A Dask array already holds numbers and needs no encoder.",
    )


def category_columns(X: Any) -> tuple[str, ...]:
    """Return the columns that are categories by their dtype, or by the schema of the file, whatever their values."""
    if is_dask(X):
        return tuple(str(name) for name, kind in X.dtypes.items() if str(kind) == "category")
    import pyarrow.dataset
    import pyarrow.types

    path = X.pieces[0].path
    schema = pyarrow.dataset.dataset(path, format=FORMATS[Path(path).suffix]).schema
    return tuple(field.name for field in schema if field.name in X.names and pyarrow.types.is_dictionary(field.type))


def frame_of(rows: np.ndarray, names: Sequence[str], categories: Sequence[str]) -> Any:
    """Return rows of objects as a frame in which each column has the dtype of its values, or is a category."""
    import pandas as pd

    frame = pd.DataFrame(rows, columns=list(names)).infer_objects()
    return frame.astype(dict.fromkeys(categories, "category"))
