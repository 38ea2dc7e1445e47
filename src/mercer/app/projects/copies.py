"""Rows that stand in a table more than once: one to learn from and its copy to score on would flatter a model."""

from typing import Any

import numpy as np

from mercer.tables.frames import optional

# Equal rows are copies, not coincidences, if some column has more different values than these, and than this share of
# the different rows.
FEWEST_VALUES, SHARE_OF_VALUES = 20, 0.2


def find_copies(inputs: Any) -> np.ndarray | None:
    """Return a number for each row, the same for rows with equal inputs; None where no rows are copies.

    Rows of few categories are equal by coincidence, and their inputs are all that is known of them: these are no
    copies. O(n d).

    Parameters
    ----------
    inputs : data frame
        Without identifiers: they would tell copies apart.
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
