"""Levels, medians, means and spreads of columns over all rows, wherever these are: what an encoder of all would know.

An encoder that has learned from a draw of the rows knows the kinds of columns, and about where their numbers lie. One
pass over all rows then gives the rest, and not only nearly: a median is among the few numbers near that of the draw,
which are brought here, and how many are below them is counted. So the encoder is the one of a table in memory.
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

# Numbers are brought here that lie within so many standard errors of the draw's median; if it is not among them, within
# so many times as many, once more.
ERRORS, WIDER = 5.0, 4.0


class Asked(NamedTuple):
    """A column whose sums are asked for.

    Attributes
    ----------
    name : str
    reader : Reader
    middle : ndarray of shape (k,)
        The means of the draw, from which sums are taken: so no digits are lost.
    low, high : float
        Numbers between these are kept; none for what has no median.
    """

    name: str
    reader: Reader
    middle: np.ndarray
    low: float = np.inf
    high: float = -np.inf


class Sums(NamedTuple):
    """What one part of the rows says of a column.

    Attributes
    ----------
    n_rows, n_missing : int
    total, squares : ndarrays of shape (k,)
        Of the numbers beside the middle.
    least, most : ndarrays of shape (k,)
    below : int
        How many numbers are below the kept ones.
    values, counts : ndarrays
        The kept numbers that differ, and how often each is there.
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
        Fitted on some rows; the kinds of columns stay as these say. Means of levels are not changed
        (`level_sums.with_means_of_all_rows`), nor their scales.
    rows : Rows
        All rows, of objects.
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
    """Return the readers whose numbers are to be summed, by their places; categories know the levels of all rows.

    What has more levels among all rows than a category with a column for each may have stays with those of the draw.
    """
    readers: dict[int, Reader] = {
        i: each.reader for i, each in enumerate(encoder.columns_) if not isinstance(each.reader, LevelMeans)
    }
    names = [each.name for each in encoder.columns_]
    # Beside means a column has the levels that are frequent, and no others.
    whole = [i for i, each in readers.items() if isinstance(each, Categories) and names.count(names[i]) == 1]
    if whole:
        levels = levels_of_all_rows(rows, (tuple(rows.names), categories, tuple(names[i] for i in whole)))
        for i, (seen, missing) in zip(whole, levels, strict=True):
            if len(seen) < max(encoder.cardinality_threshold, len(readers[i].levels) + 1):  # type: ignore[union-attr]
                readers[i] = Categories(seen, missing)
    return readers


def asked_of(name: str, reader: Reader, drawn: Any, errors: float) -> Asked:
    """Return what is asked about a column, by what the draw says of it."""
    raw = reader.read(drawn[name]).raw
    present = raw[~np.isnan(raw[:, 0])]
    middle = present.mean(axis=0)
    if not isinstance(reader, Numbers):
        return Asked(name, reader, middle)
    ordered, n = np.sort(present[:, 0]), len(present)
    # The number of drawn rows below the median of all is binomial.
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
    """Return what all parts say of a column; None where its median is not among the numbers that were kept."""
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
    """Return the median of n numbers from how many are below the kept ones, and these; None if it is not among them."""
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
    """Return what some rows, of objects, say of each column that is asked about: the part of a worker."""
    frame = frame_of(rows, names, categories)
    return [sums_of(each, each.reader.read(frame[each.name]).raw) for each in asked]


def sums_of(asked: Asked, raw: np.ndarray) -> Sums:
    """Return the sums of a reader's numbers, of shape (n, k)."""
    missing = np.isnan(raw[:, 0])
    present = raw[~missing]
    beside = present - asked.middle
    first = present[:, 0]
    kept = first[(first >= asked.low) & (first <= asked.high)]
    return Sums(
        len(raw),
        int(missing.sum()),
        beside.sum(axis=0),
        np.square(beside).sum(axis=0),
        present.min(axis=0, initial=np.inf),
        present.max(axis=0, initial=-np.inf),
        int((first < asked.low).sum()),
        *np.unique(kept, return_counts=True),
    )
