"""Find copies of rows. A model that learns from a row and is scored on its copy looks better than it is."""

from typing import Any

import numpy as np

from mercer.tables.frames import optional

# Equal rows count as copies, not as coincidences, if some column has more different values than FEWEST_VALUES, and than
# the share SHARE_OF_VALUES of the different rows.
FEWEST_VALUES, SHARE_OF_VALUES = 20, 0.2


def find_copies(inputs: Any) -> np.ndarray | None:
    """Return a number for each row, the same for rows with equal inputs; None if no rows are copies.

    Rows with a few categories only are often equal by coincidence; these do not count as copies. O(n d).

    Parameters
    ----------
    inputs : data frame
        Without identifiers, which would differ between copies.
    """
    pandas = optional("pandas", "a table")
    if not inputs.shape[1]:
        return None
    codes, different = pandas.factorize(pandas.util.hash_pandas_object(inputs, index=False))
    if len(different) == len(codes):
        return None
    most = max(int(inputs[name].nunique()) for name in inputs.columns)
    if most <= max(FEWEST_VALUES, SHARE_OF_VALUES * len(different)):
        return None
    return np.asarray(codes)
