"""The standard deviations by which figures of tables divide the columns."""

import numpy as np

# A standard deviation of at most this share of the mean of its column is the rounding error of a constant.
ROUNDING = 1e-12


def divisors(center: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Return the standard deviations `spread` of columns with the means `center`, and 1 for constant columns."""
    return np.where(spread > ROUNDING * np.abs(center), spread, 1.0)
