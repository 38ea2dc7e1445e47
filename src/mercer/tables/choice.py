"""Choose how each column becomes numbers: the readers that it gets."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from mercer.tables.columns import Reader
from mercer.tables.frames import optional
from mercer.tables.kinds import find_kinds
from mercer.tables.level_means import FOLDS, LevelMeans, Target
from mercer.tables.readers import Categories, Dates, Numbers, as_texts
from mercer.tables.text import Texts

# Strings are levels, not text, if at least this share of the rows has a value that another row has too.
SHARE_OF_REPEATED = 0.5
# In addition to the means, each level that at least this share of the rows has gets a column, up to so many levels.
SHARE_OF_FREQUENT, MOST_FREQUENT = 0.02, 10
# The text of levels is informative if its n-grams explain more than this share of the variance of left-out means.
SHARE_EXPLAINED = 0.05
# A table of p columns should become at most WIDTH * p + WIDTH_OF_ALL columns, not counting those of texts.
WIDTH, WIDTH_OF_ALL = 3, 50


def find_readers(
    columns: Mapping[str, Any],
    given: Mapping[str, str],
    cardinality_threshold: int,
    n_components: int,
    target: Target | None = None,
) -> dict[str, list[Reader]]:
    """Return the readers of each column that has values.

    A category with few levels becomes one column for each level. If there is a target, categories with many levels that
    repeat are encoded by its means. So are those with the most levels, if the table would otherwise be too wide.

    Parameters
    ----------
    columns : dict of names and pandas Series or ndarray
    given : dict of names and kinds
        The kinds that the user has given for some columns.
    cardinality_threshold : int
        Strings with this many different values or more are not categories with few levels.
    n_components : int
        The number of columns that encode a text.
    target : Target or None
    """
    readers: dict[str, list[Reader]] = {}
    for name, (kind, form) in find_kinds(columns, given, cardinality_threshold).items():
        column = columns[name]
        if kind == "number":
            readers[name] = [Numbers()]
        elif kind == "date":
            readers[name] = [Dates.fit(column, form)]
        elif kind == "category":
            categories = Categories.fit(column)
            if target is None or len(categories.levels) < cardinality_threshold:
                readers[name] = [categories]
            else:
                readers[name] = of_many_levels(column, target, n_components)
        elif target is not None and name not in given and comes_again(as_texts(column)):
            readers[name] = of_many_levels(column, target, n_components)
        else:
            readers[name] = [Texts.fit(column, n_components)]
    return readers if target is None else narrowed(readers, columns, target)


def of_many_levels(column: Any, target: Target, n_components: int) -> list[Reader]:
    """Return the readers of a category with many levels: means, frequent levels, and text if it is informative."""
    texts, means = Texts.fit(column, n_components), LevelMeans.fit(column, target)
    return [*frequent_levels(column), means, *([texts] if explains(texts, means) else [])]


def frequent_levels(column: Any) -> list[Categories]:
    """Return the reader of the levels that many rows have, or nothing if no level is frequent."""
    counts = Counter(text for text in as_texts(column) if text is not None)
    fewest = SHARE_OF_FREQUENT * len(column)
    frequent = sorted(level for level, count in counts.most_common(MOST_FREQUENT) if count >= fewest)
    return [Categories(frequent, False)] if frequent else []


def comes_again(texts: np.ndarray) -> bool:
    """Whether most rows share their value with another row, as with post codes and cities but not with free text."""
    counts = np.array(list(Counter(text for text in texts if text is not None).values()))
    return bool(counts[counts > 1].sum() >= SHARE_OF_REPEATED * counts.sum())


def explains(texts: Texts, means: LevelMeans) -> bool:
    """Whether a ridge regression on the n-grams of levels predicts the means of levels that were left out."""
    Z = texts.read(optional("pandas", "a table").Series(means.levels, dtype=object)).raw
    M = means.means[: len(Z)]
    folds = PredefinedSplit(np.arange(len(Z)) % FOLDS)
    predicted = cross_val_predict(RidgeCV(np.logspace(-3, 3, 7)), Z, M, cv=folds).reshape(M.shape)
    return bool(((M - predicted) ** 2).sum() < (1.0 - SHARE_EXPLAINED) * ((M - M.mean(axis=0)) ** 2).sum())


def narrowed(
    readers: Mapping[str, list[Reader]], columns: Mapping[str, Any], target: Target
) -> dict[str, list[Reader]]:
    """Replace columns for single levels by means, most levels first, until the table is narrow enough.

    A distance is a sum over all columns: hundreds of levels with a small weight each would hide a few important
    numbers.
    """
    narrow = dict(readers)
    widths = {name: width_of(name, own) for name, own in readers.items()}
    one_a_level = [name for name, own in readers.items() if isinstance(own[-1], Categories)]
    for name in sorted(one_a_level, key=lambda name: -widths[name]):
        if sum(widths.values()) <= WIDTH * len(columns) + WIDTH_OF_ALL:
            break
        instead: list[Reader] = [*frequent_levels(columns[name]), LevelMeans.fit(columns[name], target)]
        if width_of(name, instead) < widths[name]:
            narrow[name], widths[name] = instead, width_of(name, instead)
    return narrow


def width_of(name: str, readers: list[Reader]) -> int:
    """Return how many columns the readers make of a column, not counting those of texts."""
    return sum(len(reader.names(name)) for reader in readers if not isinstance(reader, Texts))
