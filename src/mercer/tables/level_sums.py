"""Means of the target at the levels of categories, over all rows of a table that is not in memory, in two passes.

An encoder that was fitted on a random draw of the rows knows only the levels of the draw, and the means of its targets.
If the estimator learned from all rows with these means, the rows of the draw would see their own targets in them. So
the levels and means are taken over all rows, and in the fit each row gets the mean over the folds that it is not in.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import rows_per_block
from mercer.rows import MappedRows, RowNumbers, frame_of, gather_over_rows, sum_over_rows
from mercer.tables.encoder import TableEncoder
from mercer.tables.level_means import FOLDS, LevelMeans, Target, shrunken_means
from mercer.tables.readers import as_texts, level_codes, levels_of

# The multiplier of Fibonacci hashing: folds have no period along the rows that levels could have as well.
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# Approximate memory of one value of dtype object together with its text.
BYTES_A_VALUE = 128

Columns = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""The names of all columns, of those with a categorical dtype, and of those whose levels are requested."""


def with_means_of_all_rows(
    encoder: TableEncoder, rows: Any, categories: tuple[str, ...], y: Any, drawn: np.ndarray
) -> tuple[TableEncoder, list[TableEncoder]]:
    """Return an encoder for new rows, and one encoder for each fold of the rows of the fit (see `folds_of`).

    Parameters
    ----------
    encoder : TableEncoder
        Fitted on some rows. The weight of the mean of all rows, which was found from these, is not changed.
    rows : Rows
        All rows, with values of dtype object.
    categories : tuple of str
        Columns with a categorical dtype.
    y : array-like or Rows of shape (n,)
        The target of all rows.
    drawn : ndarray of shape (some,)
        The targets that the encoder was fitted on. They say which classes have a mean.

    Returns
    -------
    encoder : TableEncoder
    of_fit : list of TableEncoder
        One for each fold. It is [encoder], unchanged, if the encoder has no means of levels.
    """
    readers = {place: each.reader for place, each in enumerate(encoder.columns_) if isinstance(each.reader, LevelMeans)}
    if not readers:
        return encoder, [encoder]
    columns = (tuple(rows.names), categories, tuple(encoder.columns_[place].name for place in readers))
    levels = levels_of_all_rows(rows, columns)
    classes = None if encoder.target_type == "numbers" else Target.levels_of_classes(drawn)
    sums = sum_over_rows(
        make_level_sums,
        (tuple(len(seen) + missing for seen, missing in levels),),
        MappedRows(codes_of, (columns, levels), rows),
        MappedRows(folds_of, (), RowNumbers(len(rows))),
        MappedRows(target_values, (classes,), y),
        rows_a_block=rows_per_block(len(rows), BYTES_A_VALUE * rows.shape[1]),
    )
    encoders = [copy.copy(encoder) for _ in range(FOLDS + 1)]
    for each in encoders:
        each.columns_ = list(encoder.columns_)
    for (place, reader), (seen, missing), of_column in zip(readers.items(), levels, sums, strict=True):
        by_fold = of_column.cpu().numpy()
        total = by_fold.sum(axis=0)
        mean = total[:, 1:].sum(axis=0) / len(rows)
        for each, left_out in zip(encoders, [0.0, *by_fold], strict=True):
            some = total - left_out
            means = shrunken_means(some[:, 1:], some[:, :1], mean, reader.weight)
            known = replace(reader, levels=seen, missing=missing, means=means, mean=mean)
            each.columns_[place] = replace(each.columns_[place], reader=known)
    return encoders[0], encoders[1:]


def folds_of(numbers: np.ndarray) -> np.ndarray:
    """Return the fold of each row, which depends on its number alone and has no period along the rows."""
    return ((numbers.astype(np.uint64) * MULTIPLIER >> np.uint64(33)) % np.uint64(FOLDS)).astype(np.int64)


def encoded_in_fit(
    rows: np.ndarray,
    numbers: np.ndarray,
    encoders: Sequence[TableEncoder],
    names: tuple[str, ...],
    categories: tuple[str, ...],
) -> np.ndarray:
    """Return encoded rows of the fit, in which the means do not use a row's own target."""
    folds = folds_of(numbers)
    encoded = np.empty((len(rows), len(encoders[0].get_feature_names_out())))
    for fold, encoder in enumerate(encoders):
        if (own := folds == fold).any():
            encoded[own] = encoder.transform(frame_of(rows[own], names, categories))
    return encoded


# ---- levels and sums of a block of rows --------------------------------------------------------------------------


def levels_of_all_rows(rows: Any, columns: Columns) -> list[tuple[list[str], bool]]:
    """Return the sorted levels of each requested column among all rows, and whether values are missing."""
    parts = gather_over_rows(levels_in, (columns,), rows)
    return [
        (sorted({level for seen, _ in found for level in seen}), any(missing for _, missing in found))
        for found in zip(*parts, strict=True)
    ]


def levels_in(rows: np.ndarray, columns: Columns) -> list[tuple[list[str], bool]]:
    """Return the sorted levels of each requested column among some rows, and whether values are missing."""
    names, categories, asked = columns
    frame = frame_of(rows, names, categories)
    return [levels_of(as_texts(frame[name])) for name in asked]


def codes_of(rows: np.ndarray, columns: Columns, levels: Sequence[tuple[list[str], bool]]) -> np.ndarray:
    """Return the level of each row as an integer code, of shape (n, number of requested columns)."""
    names, categories, asked = columns
    frame = frame_of(rows, names, categories)
    codes = [level_codes(as_texts(frame[name]), *known) for name, known in zip(asked, levels, strict=True)]
    return np.stack(codes, axis=1)


def target_values(y: np.ndarray, classes: list[str] | None) -> np.ndarray:
    """Return the target as numbers whose means are meaningful, of shape (n, c)."""
    return y.astype(np.float64)[:, None] if classes is None else Target.shares(y, classes)


def make_level_sums(sizes: Sequence[int]) -> Callable[..., tuple[Tensor, ...]]:
    """Return the function that counts rows and sums targets in a block, by fold and level.

    For each column it returns a tensor of shape (FOLDS, number of levels, 1 + c), with the counts first.
    """

    def of_block(codes: Tensor, folds: Tensor, Y: Tensor) -> tuple[Tensor, ...]:
        terms = torch.cat([torch.ones_like(Y[:, :1]), Y], dim=1).double()
        places = [folds * size + codes[:, j].long() for j, size in enumerate(sizes)]
        sums = [
            terms.new_zeros(FOLDS * size, terms.shape[1]).index_add_(0, place, terms)
            for size, place in zip(sizes, places, strict=True)
        ]
        return tuple(total.reshape(FOLDS, size, -1) for total, size in zip(sums, sizes, strict=True))

    return of_block
