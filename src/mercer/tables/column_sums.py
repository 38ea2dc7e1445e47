"""Levels, medians, means and spreads of columns over all rows of a table that is not in memory.

An encoder that was fitted on a random draw of the rows knows the kinds of columns, and roughly where their numbers lie.
One pass over all rows then gives exact values, the same as for a table in memory. For a median, the numbers near the
median of the draw are collected, and the numbers below these are counted.
"""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mercer.rows import frame_of, gather_over_rows
from mercer.tables.columns import ColumnSummary, EncodedColumn, Reader
from mercer.tables.encoder import TableEncoder
from mercer.tables.level_means import LevelMeans
from mercer.tables.level_sums import levels_of_all_rows
from mercer.tables.readers import Categories, Numbers

# Numbers within ERRORS standard errors of the draw's median are collected. If the median is not among them, another
# pass collects those within WIDER times as many.
ERRORS, WIDER = 5.0, 4.0


class Asked(NamedTuple):
    """A column whose sums are requested.

    Attributes
    ----------
    name : str
    reader : Reader
    middle : ndarray of shape (k,)
        The means of the draw. They are subtracted before numbers are summed, so that no digits are lost.
    low, high : float
        Numbers from low to high are collected for the median. By default there are none.
    """

    name: str
    reader: Reader
    middle: np.ndarray
    low: float = np.inf
    high: float = -np.inf


class Sums(NamedTuple):
    """The sums of one column over one part of the rows.

    Attributes
    ----------
    n_rows, n_missing : int
    total, squares : ndarrays of shape (k,)
        The sums of (number - middle) and of its square.
    least, most : ndarrays of shape (k,)
        The smallest and the largest number.
    below : int
        How many numbers are below those that are collected for the median.
    values, counts : ndarrays
        The different numbers that are collected, and how often each occurs.
    """

    n_rows: int
    n_missing: int
    total: np.ndarray
    squares: np.ndarray
    least: np.ndarray
    most: np.ndarray
    below: int
    values: np.ndarray
    counts: np.ndarray


def with_sums_of_all_rows(encoder: TableEncoder, rows: Any, categories: tuple[str, ...], drawn: Any) -> TableEncoder:
    """Return the encoder with the levels, fill values and scales of all rows.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted on some rows. The kinds of columns that it found, and the means of levels with their scales, are not
        changed; for means see `level_sums.with_means_of_all_rows`.
    rows : Rows
        All rows, with values of dtype object.
    categories : tuple of str
        Columns that are categories by their dtype.
    drawn : DataFrame
        The rows that the encoder was fitted on.
    """
    readers = readers_of_all_rows(encoder, rows, categories)
    summaries: dict[int, ColumnSummary] = {}
    errors = ERRORS
    while waiting := [place for place in readers if place not in summaries]:
        asked = [asked_of(encoder.columns_[place].name, readers[place], drawn, errors) for place in waiting]
        parts = gather_over_rows(sums_in, (tuple(rows.names), categories, asked), rows)
        for place, each, own in zip(waiting, asked, zip(*parts, strict=True), strict=True):
            if (found := summary_of_parts(each, own)) is not None:
                summaries[place] = found
        errors *= WIDER
    return _with_summaries(encoder, readers, summaries)


def readers_of_all_rows(encoder: TableEncoder, rows: Any, categories: tuple[str, ...]) -> dict[int, Reader]:
    """Return the readers whose numbers are summed, by position; categories know the levels of all rows.

    If a category has too many levels among all rows for one column each, it keeps the levels of the draw.
    """
    readers: dict[int, Reader] = {
        i: each.reader for i, each in enumerate(encoder.columns_) if not isinstance(each.reader, LevelMeans)
    }
    names = [each.name for each in encoder.columns_]
    # A column that also has means gets columns for its frequent levels alone: these stay as they are.
    whole = [i for i, each in readers.items() if isinstance(each, Categories) and names.count(names[i]) == 1]
    if whole:
        levels = levels_of_all_rows(rows, (tuple(rows.names), categories, tuple(names[i] for i in whole)))
        for i, (seen, missing) in zip(whole, levels, strict=True):
            if len(seen) < max(encoder.cardinality_threshold, len(readers[i].levels) + 1):  # type: ignore[union-attr]
                readers[i] = Categories(seen, missing)
    return readers


def asked_of(name: str, reader: Reader, drawn: Any, errors: float) -> Asked:
    """Return which sums to request for a column, from its values in the draw."""
    raw = reader.read(drawn[name]).raw
    present = raw[~np.isnan(raw[:, 0])]
    middle = present.mean(axis=0)
    if not isinstance(reader, Numbers):
        return Asked(name, reader, middle)
    ordered, n = np.sort(present[:, 0]), len(present)
    # The number of drawn rows below the median of all rows is binomial, with standard deviation sqrt(n) / 2.
    reach = errors * np.sqrt(n) / 2 + 1
    first, last = int(np.floor(n / 2 - reach)), int(np.ceil(n / 2 + reach))
    low = ordered[first] if first >= 0 else -np.inf
    return Asked(name, reader, middle, float(low), float(ordered[last]) if last < n else np.inf)


def _with_summaries(
    encoder: TableEncoder, readers: dict[int, Reader], summaries: dict[int, ColumnSummary]
) -> TableEncoder:
    changed, at = copy.copy(encoder), 0
    columns, origins, variances = [], [], []
    for place, old in enumerate(encoder.columns_):
        width = len(old.names())
        new, variance = old, encoder.variances_[at : at + width]
        if place in summaries:
            new = EncodedColumn.of_summary(old.name, readers[place], summaries[place], encoder.scale)
            variance = new.variances(summaries[place])
        columns.append(new)
        origins.append(np.full(len(variance), encoder.origins_[at]))
        variances.append(variance)
        at += width
    changed.columns_ = columns
    changed.origins_, changed.variances_ = np.concatenate(origins), np.concatenate(variances)
    return changed


def summary_of_parts(asked: Asked, parts: Sequence[Sums]) -> ColumnSummary | None:
    """Return the summary of a column from all parts, or None if its median is not among the collected numbers."""
    n_rows, n_missing = sum(part.n_rows for part in parts), sum(part.n_missing for part in parts)
    present = n_rows - n_missing
    total, squares = (np.sum([getattr(part, name) for part in parts], axis=0) for name in ("total", "squares"))
    fill = asked.middle + total / present
    if isinstance(asked.reader, Numbers):
        median = median_of_parts(parts, present)
        if median is None:
            return None
        fill = np.array([median])
    away = fill - asked.middle
    mean = (total + n_missing * away) / n_rows
    variance = (squares + n_missing * away**2) / n_rows - mean**2
    least, most = np.min([part.least for part in parts], axis=0), np.max([part.most for part in parts], axis=0)
    spread = np.sqrt(np.maximum(variance, 0.0))
    return ColumnSummary(n_rows, n_missing, fill, asked.middle + mean, spread, least, most)


def median_of_parts(parts: Sequence[Sums], n: int) -> float | None:
    """Return the median of n numbers from those that were collected, or None if it is not among them."""
    below = sum(part.below for part in parts)
    values, place = np.unique(np.concatenate([part.values for part in parts]), return_inverse=True)
    counts = np.bincount(place.reshape(-1), weights=np.concatenate([part.counts for part in parts]), minlength=0)
    reached = below + np.cumsum(counts)
    ranks = np.array([(n - 1) // 2, n // 2])
    if not len(values) or ranks[0] < below or ranks[1] >= reached[-1]:
        return None
    return float(np.mean(values[np.searchsorted(reached, ranks, side="right")]))


def sums_in(
    rows: np.ndarray, names: tuple[str, ...], categories: tuple[str, ...], asked: Sequence[Asked]
) -> list[Sums]:
    """Return the sums of each requested column over some rows; this is what a worker does."""
    frame = frame_of(rows, names, categories)
    return [sums_of(each, each.reader.read(frame[each.name]).raw) for each in asked]


def sums_of(asked: Asked, raw: np.ndarray) -> Sums:
    """Return the sums of a reader's raw numbers, which have the shape (n, k)."""
    missing = np.isnan(raw[:, 0])
    present = raw[~missing]
    beside = present - asked.middle
    first = present[:, 0]
    kept = first[(first >= asked.low) & (first <= asked.high)]
    values, counts = np.unique(kept, return_counts=True)
    return Sums(
        n_rows=len(raw),
        n_missing=int(missing.sum()),
        total=beside.sum(axis=0),
        squares=np.square(beside).sum(axis=0),
        least=present.min(axis=0, initial=np.inf),
        most=present.max(axis=0, initial=-np.inf),
        below=int((first < asked.low).sum()),
        values=values,
        counts=counts,
    )
