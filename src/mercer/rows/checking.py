"""The check of rows as they are read from files or from Dask: an error names the file or partition of a bad number."""

from collections.abc import Sequence

import numpy as np

from mercer.checks import LARGEST_NUMBERS
from mercer.exceptions import DataFileError, shown


def check_numbers(rows: np.ndarray, where: str, names: Sequence[str] | None, numbers: np.ndarray) -> None:
    """Raise a DataFileError if a number is missing, infinite or too large to be squared.

    Parameters
    ----------
    rows : ndarray of shape (n, d) or (n,)
        Of arrays that are not floats only objects are checked, and these only for missing values.
    where : str
        Where the rows are from, such as "row group 3 of data/part-0.parquet".
    names : sequence of str or None
        The names of the columns.
    numbers : ndarray of shape (n,)
        The numbers of these rows among all rows.
    """
    if rows.dtype.kind == "O":
        wrong = np.array([value is None or value != value for value in rows.reshape(-1)], dtype=bool).reshape(
            rows.shape
        )
    elif rows.dtype.kind == "f":
        largest = LARGEST_NUMBERS.get(rows.dtype) or float(np.finfo(rows.dtype).max)
        # A comparison with NaN is false, so that this one finds missing, infinite and too large numbers alike.
        if not rows.size or (rows.max() <= largest and rows.min() >= -largest):
            return
        wrong = ~(np.abs(rows) <= largest)
    else:
        return
    if not wrong.any():
        return
    row, *column = (int(place) for place in np.argwhere(wrong)[0])
    value = rows[(row, *column)]
    of_column = ""
    if column:
        of_column = f" in column {column[0] if names is None else shown(names[column[0]])}"
    missing = value is None or value != value
    what = "a missing value (NaN)" if missing else f"the number {value:.3g}, too large to be squared,"
    raise DataFileError(
        f"{where} has {what}{of_column} of row {int(numbers[row])} (counted from 0 over all rows). "
        "Fill such values in, or leave the rows out."
    )
