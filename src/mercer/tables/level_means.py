"""The reader for categories with many levels: the target's mean at each level, shrunk towards the mean of all rows."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mercer.tables.readers import Reading, as_text, as_texts, level_codes, levels_of

# Number of folds of the rows of the fit, so that the mean that a row gets does not use its own target.
FOLDS = 5
# A target of integers with more different values than this is taken for numbers if its type is not given.
MOST_CLASSES = 20
# The mean of all rows keeps some weight even if the levels explain the target fully: a new level has no other mean.
SMALLEST_WEIGHT = 1e-6


class Target(NamedTuple):
    """The target as numbers whose means are meaningful: the numbers themselves, or indicators of the classes.

    Attributes
    ----------
    values : ndarray of shape (n, c)
    names : list of str
        What the mean of each column is: "mean of y", or "share of yes".
    """

    values: np.ndarray
    names: list[str]

    @classmethod
    def numbers(cls, y: np.ndarray) -> "Target":
        """Return numbers of shape (n,) or (n, c) as a target."""
        values = y.reshape(len(y), -1).astype(np.float64)
        if not np.isfinite(values).all():
            raise ValueError("Input y contains infinity.")
        several = values.shape[1] > 1
        return cls(values, [f"mean of y{i}" if several else "mean of y" for i in range(values.shape[1])])

    @classmethod
    def classes(cls, y: np.ndarray) -> "Target":
        """Return classes as indicators: a column for each class, or for the second of two; outputs side by side."""
        if y.ndim > 1 and y.shape[1] > 1:
            parts = [cls.classes(column) for column in y.T]
            names = [f"{name} (y{i})" for i, part in enumerate(parts) for name in part.names]
            return cls(np.hstack([part.values for part in parts]), names)
        levels = cls.levels_of_classes(y)
        return cls(cls.shares(y, levels), [f"share of {level}" for level in _shown(levels)])

    @staticmethod
    def levels_of_classes(y: np.ndarray) -> list[str]:
        """Return the names of the classes, in order."""
        return sorted({as_text(label) for label in y.ravel().tolist()})

    @staticmethod
    def shares(y: np.ndarray, levels: list[str]) -> np.ndarray:
        """Return indicators of the named classes, of shape (n, c); rows of other classes are all 0."""
        texts = np.array([as_text(label) for label in y.ravel().tolist()], dtype=object)
        return np.stack([texts == level for level in _shown(levels)], axis=1).astype(np.float64)

    @classmethod
    def guessed(cls, y: np.ndarray) -> "Target":
        """Return a target whose type was not given: floats, and whole numbers with many values, are numbers."""
        several = y.ndim > 1 and y.shape[1] > 1
        if several or y.dtype.kind == "f" or (y.dtype.kind in "iu" and len(np.unique(y)) > MOST_CLASSES):
            return cls.numbers(y)
        return cls.classes(y)


def _shown(levels: list[str]) -> list[str]:
    """Return the classes that have a column: all, or only the second of two."""
    return levels[1:] if len(levels) == 2 else levels


# ---- the maths -------------------------------------------------------------------------------------------------


def level_sums(codes: np.ndarray, Y: np.ndarray, n_levels: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of rows at each level, of shape (n_levels, 1), and the sums of their targets."""
    counts = np.bincount(codes, minlength=n_levels)[:, None]
    return counts, np.stack([np.bincount(codes, weights=y, minlength=n_levels) for y in Y.T], axis=1)


def shrinkage(codes: np.ndarray, Y: np.ndarray, n_levels: int) -> float:
    """Return sigma^2 / tau^2: how many rows the mean of all rows counts for in the mean of a level.

    The model is that a target is the effect of its level, with variance tau^2 among levels, plus noise of variance
    sigma^2. Both are estimated by an analysis of variance that is pooled over the levels and the columns of Y, because
    the variance within a single level of few rows is too uncertain. The result is at most n, its value if the levels do
    not differ.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        The level of each row; every level has at least one row.
    Y : ndarray of shape (n, c)
    n_levels : int
    """
    n = len(codes)
    if not 1 < n_levels < n:
        return float(n)
    counts, sums = level_sums(codes, Y, n_levels)
    means = sums / counts
    within = ((Y - means[codes]) ** 2).sum() / (n - n_levels)
    among = (counts * (means - Y.mean(axis=0)) ** 2).sum() / (n_levels - 1)
    rows_of_a_level = (n - (counts**2).sum() / n) / (n_levels - 1)
    between = (among - within) / rows_of_a_level
    return float(np.clip(within / between, SMALLEST_WEIGHT, n)) if between > 0 else float(n)


def shrunken_means(sums: np.ndarray, counts: np.ndarray, mean: np.ndarray, weight: float) -> np.ndarray:
    """Return (sum + weight * mean) / (count + weight) for each level, which is `mean` for a level without rows."""
    return (sums + weight * mean) / (counts + weight)


def dealt_folds(codes: np.ndarray) -> np.ndarray:
    """Return a fold for each row, assigned in turn within each level: up to FOLDS rows of it have different folds."""
    folds = np.empty(len(codes), dtype=int)
    folds[np.argsort(codes, kind="stable")] = np.arange(len(codes)) % FOLDS
    return folds


# ---- the reader ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LevelMeans:
    """A category with many levels: the shrunk mean of the target at each level, or of all rows for a new level.

    A missing value is a level too, if there were some in the fit. This is scikit-learn's TargetEncoder with three
    differences: the weight of the mean of all rows is the same for all levels (`shrinkage`), folds are assigned within
    the levels, and the prior is the mean of all rows in each fold.

    Attributes
    ----------
    levels : list of str
    missing : bool
        Whether a missing value is a level too, the last one.
    means : ndarray of shape (number of levels, c)
    mean : ndarray of shape (c,)
    weight : float
        How many rows `mean` is worth.
    titles : list of str
        What the mean of each column is, such as "mean of y".
    """

    levels: list[str]
    missing: bool
    means: np.ndarray
    mean: np.ndarray
    weight: float
    titles: list[str]

    kind: ClassVar[str] = "category"
    scaling: ClassVar[str] = "share"

    @classmethod
    def fit(cls, column: Any, target: Target) -> "LevelMeans":
        """Find the levels and their means over all rows."""
        texts = as_texts(column)
        seen, missing = levels_of(texts)
        codes = level_codes(texts, seen, missing)
        n_levels = len(seen) + missing
        counts, sums = level_sums(codes, target.values, n_levels)
        mean, weight = target.values.mean(axis=0), shrinkage(codes, target.values, n_levels)
        return cls(seen, missing, shrunken_means(sums, counts, mean, weight), mean, weight, target.names)

    def read(self, column: Any) -> Reading:
        """Return the mean of the target at each value's level, of shape (n, c)."""
        codes = level_codes(as_texts(column), self.levels, self.missing)
        return Reading(np.vstack([self.means, self.mean])[codes], np.zeros(len(codes), dtype=bool))

    def read_left_out(self, column: Any, target: Target) -> Reading:
        """Return, for the rows of the fit, the means over the other folds, which do not use a row's own target."""
        codes = level_codes(as_texts(column), self.levels, self.missing)
        folds, raw = dealt_folds(codes), np.empty(target.values.shape)
        for fold in range(FOLDS):
            own = folds == fold
            counts, sums = level_sums(codes[~own], target.values[~own], len(self.means))
            raw[own] = shrunken_means(sums, counts, self.mean, self.weight)[codes[own]]
        return Reading(raw, np.zeros(len(codes), dtype=bool))

    def names(self, column: str) -> list[str]:
        """Return the names of what `read` gives."""
        return [f"{column}: {title}" for title in self.titles]
