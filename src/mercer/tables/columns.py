"""Turn raw numbers into the columns that an estimator sees: without missing values, and on one scale."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer.checks import LARGEST_NUMBERS
from mercer.tables.level_means import LevelMeans
from mercer.tables.readers import Categories, Dates, Numbers
from mercer.tables.text import Texts

# A standard deviation below this, relative to the numbers, is rounding error: 0.1 + 0.2 is not 0.3.
ROUNDING = 100 * np.finfo(np.float64).eps
# An additional column marks missing values if there are this many of them, or this share of a small table: nothing can
# be learned from fewer.
FEWEST_MARKED, SHARE_MARKED = 5, 0.1
LARGEST = LARGEST_NUMBERS[np.dtype(np.float64)]

Reader = Numbers | Dates | Categories | LevelMeans | Texts


class ColumnSummary(NamedTuple):
    """Statistics, over the rows of the fit, of the k numbers that a reader makes of a column.

    Attributes
    ----------
    n_rows, n_missing : int
    fill : ndarray of shape (k,)
        What replaces missing numbers: the median of numbers, and the mean of everything else.
    center, spread : ndarrays of shape (k,)
        Mean and standard deviation after missing numbers are replaced.
    least, most : ndarrays of shape (k,)
        Minimum and maximum of the numbers that are not missing.
    """

    n_rows: int
    n_missing: int
    fill: np.ndarray
    center: np.ndarray
    spread: np.ndarray
    least: np.ndarray
    most: np.ndarray

    @classmethod
    def of_raw(cls, reader: Reader, raw: np.ndarray) -> "ColumnSummary":
        """Return the summary of numbers in memory."""
        missing = np.isnan(raw[:, 0])
        present = raw[~missing]
        # The median of numbers is robust against outliers. The parts of a date or a text belong together: their mean is
        # the middle of the circle or of the texts, while medians of sines and cosines would give an arbitrary date.
        fill = np.median(present, axis=0) if isinstance(reader, Numbers) else present.mean(axis=0)
        filled = np.where(missing[:, None], fill, raw)
        extremes = present.min(axis=0), present.max(axis=0)
        return cls(len(raw), int(missing.sum()), fill, filled.mean(axis=0), filled.std(axis=0), *extremes)


@dataclass(frozen=True, eq=False)
class EncodedColumn:
    """One column of the user's table, and how a reader turns it into numbers; it holds plain values only.

    Every column has the same weight, however many encoded columns it becomes: if it is scaled, their variances sum to
    1, so that the mean squared distance of two rows along it is 2. Categories stay 0 and 1, for which it is at most 2.

    Attributes
    ----------
    name : str
    reader : Numbers, Dates, Categories, LevelMeans or Texts
    kept : ndarray of int
        Which of the reader's numbers vary over the rows of the fit; the others carry no information.
    fill, center, factor : ndarray of shape (len(kept),)
        A missing number is replaced by `fill`; then each number becomes (number - center) * factor.
    marked : bool
        Whether an additional column marks the missing values, because there were enough of them in the fit.
    """

    name: str
    reader: Reader
    kept: np.ndarray
    fill: np.ndarray
    center: np.ndarray
    factor: np.ndarray
    marked: bool

    @classmethod
    def fit(cls, name: str, reader: Reader, raw: np.ndarray, scale: bool) -> "EncodedColumn":
        """Compute the fill values and scales from the raw numbers of the fit, not all of which are missing."""
        return cls.of_summary(name, reader, ColumnSummary.of_raw(reader, raw), scale)

    @classmethod
    def of_summary(cls, name: str, reader: Reader, summary: ColumnSummary, scale: bool) -> "EncodedColumn":
        """Compute the fill values and scales from the statistics of the rows of the fit."""
        n_rows, n_missing, fill, center, spread, least, most = summary
        rounding = ROUNDING * np.maximum(np.abs(least), np.abs(most))
        kept = np.flatnonzero((least < most) & (spread > rounding) & np.isfinite(spread))
        center, spread = center[kept], spread[kept]
        if not scale or reader.scaling == "none":
            center, factor = np.zeros(len(kept)), np.ones(len(kept))
        elif reader.scaling == "together":  # one factor keeps the ratios of distances
            factor = np.full(len(kept), 1.0 / np.sqrt((spread**2).sum()) if len(kept) else 1.0)
        else:
            factor = 1.0 / (spread * np.sqrt(len(kept)))
        fewest = max(1.0, min(FEWEST_MARKED, SHARE_MARKED * n_rows))
        return cls(name, reader, kept, fill[kept], center, factor, bool(n_missing >= fewest))

    def variances(self, summary: ColumnSummary) -> np.ndarray:
        """Return the variances of the columns that the estimator sees over the rows of a summary."""
        share = summary.n_missing / summary.n_rows
        return np.append((summary.spread[self.kept] * self.factor) ** 2, [share * (1.0 - share)] * self.marked)

    def encode(self, raw: np.ndarray) -> np.ndarray:
        """Return the columns that the estimator sees, from the reader's raw numbers."""
        missing = np.isnan(raw[:, :1])
        with np.errstate(over="ignore"):
            columns = (np.where(missing, self.fill, raw[:, self.kept]) - self.center) * self.factor
        # Divided by a tiny standard deviation, a number may become too large to be squared: it is clipped.
        np.clip(columns, -LARGEST, LARGEST, out=columns)
        return np.hstack([columns, missing]) if self.marked else columns

    def names(self) -> list[str]:
        """Return the names of the encoded columns."""
        every = self.reader.names(self.name)
        return [every[i] for i in self.kept] + [f"{self.name} is missing"] * self.marked


def unreadable_values(column: Any, unreadable: np.ndarray) -> str:
    """Describe, for a message, how many values of a column could not be read, with an example."""
    example = column.iloc[int(np.flatnonzero(unreadable)[0])]
    return f"{int(unreadable.sum())} in {column.name!r} (such as {example!r})"
