"""The numbers of some rows, drawn at random."""

import numpy as np


def drawn_rows(n: int, most: int, random: np.random.RandomState, among: np.ndarray | None = None) -> np.ndarray:
    """Return the numbers of all n rows, or of the rows `among`, or of `most` of these drawn at random, in order."""
    rows = np.arange(n) if among is None else among
    return rows if len(rows) <= most else np.sort(random.choice(rows, most, replace=False))
