"""From raw numbers to the columns that an estimator sees: missing values filled in and marked, all on one scale."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mercer.checks import LARGEST_NUMBERS
from mercer.tables.level_means import LevelMeans
from mercer.tables.readers import Categories, Dates, Numbers
from mercer.tables.text import Texts

# A spread below this, relative to the numbers, is rounding: 0.1 + 0.2 is not 0.3.
ROUNDING = 100 * np.finfo(np.float64).eps
# Missing values get a column that marks them if there are this many, or if this share of a small table has them: of
# fewer rows nothing can be learned.
FEWEST_MARKED, SHARE_MARKED = 5, 0.1
LARGEST = LARGEST_NUMBERS[np.dtype(np.float64)]

Reader = Numbers | Dates | Categories | LevelMeans | Texts


class ColumnSummary(NamedTuple):
    """What the rows of a fit say of the k numbers that a reader makes of a column.

    Attributes
    ----------
    n_rows, n_missing : int
    fill : ndarray of shape (k,)
        What stands for missing numbers.
    center, spread : ndarrays of shape (k,)
        Mean and standard deviation, missing numbers being filled in.
    least, most : ndarrays of shape (k,)
        Of the numbers that are there.
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
        # A number that is far out moves the median little. Parts of dates and texts belong together: the mean is
        # the middle of the circle and of the texts, where the median of a sine is some date that nobody chose.
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
        """Return the column of which the rows of the fit say this."""
        n_rows, n_missing, fill, center, spread, least, most = summary
        rounding = ROUNDING * np.maximum(np.abs(least), np.abs(most))
        kept = np.flatnonzero((least < most) & (spread > rounding) & np.isfinite(spread))
        center, spread = center[kept], spread[kept]
        if not scale or reader.scaling == "none":
            center, factor = np.zeros(len(kept)), np.ones(len(kept))
        elif reader.scaling == "together":  # keeps the shape of the cloud
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
        # In units of a tiny deviation a number may be too large to be squared: it is as far away as a number can be.
        np.clip(columns, -LARGEST, LARGEST, out=columns)
        return np.hstack([columns, missing]) if self.marked else columns

    def names(self) -> list[str]:
        """Return the names of the encoded columns."""
        every = self.reader.names(self.name)
        return [every[i] for i in self.kept] + [f"{self.name} is missing"] * self.marked


def unreadable_values(column: Any, unreadable: np.ndarray) -> str:
    """Return for a message how many values of a column could not be read, with one of them."""
    example = column.iloc[int(np.flatnonzero(unreadable)[0])]
    return f"{int(unreadable.sum())} in {column.name!r} (such as {example!r})"
