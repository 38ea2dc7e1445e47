"""The classes of rows, wherever their labels are, and random rows among which every class is represented."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from mercer.blocks import Rows
from mercer.checks import distinct_classes
from mercer.rows.cluster import cluster_of
from mercer.rows.loop import gather_over_rows
from mercer.rows.sources import MappedRows

# Rows that are drawn include at least so many of each class, or all of a class that has fewer.
FEWEST_OF_A_CLASS = 100


def numbered_classes(y: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the sorted classes, the number of each row's class, and these numbers as a source for sums over rows.

    Labels that are elsewhere are read once, and the numbers of their classes stay in memory, in eight bytes for each
    row. Workers, if there are any, read the labels again together with the rows, so that nothing as large as the data
    is sent to them.
    """
    if not isinstance(y, Rows):
        distinct_classes(y)  # first, since scikit-learn has no clear error for classes that do not compare
        check_classification_targets(y)
        classes, index = distinct_classes(y, return_inverse=True)
        numbers = index.astype(np.int64)
        return classes, numbers, numbers
    parts = gather_over_rows(distinct_labels, (), y)
    classes = distinct_classes(np.concatenate([own for own, _ in parts]))
    check_classification_targets(classes)
    numbers = np.concatenate([class_numbers(own, classes)[index] for own, index in parts])
    return classes, numbers, numbers if cluster_of([y]) is None else MappedRows(class_numbers, (classes,), y)


def distinct_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels of some rows, sorted, and for each row the int32 number of its label among them."""
    own, index = distinct_classes(y, return_inverse=True)
    return own, index.astype(np.int32)


def class_numbers(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the number of each label among the classes."""
    return np.searchsorted(classes, y).astype(np.int64)


def drawn_with_classes(numbers: np.ndarray, n_classes: int, most: int, random: np.random.RandomState) -> np.ndarray:
    """Return the numbers of all rows if there are at most `most`; else of `most` random ones and some of rare classes.

    Rows are added so that each class has at least `FEWEST_OF_A_CLASS` rows, or all that it has. The numbers are sorted.
    """
    n = len(numbers)
    if n <= most:
        return np.arange(n)
    drawn = random.choice(n, most, replace=False)
    return np.union1d(drawn, some_of_rare_classes(numbers, n_classes, drawn))


def some_of_rare_classes(numbers: np.ndarray, n_classes: int, drawn: np.ndarray) -> np.ndarray:
    """Return the first `FEWEST_OF_A_CLASS` rows of each class of which fewer were drawn, or all that it has."""
    n_drawn = np.bincount(numbers[drawn], minlength=n_classes)
    rare = [np.flatnonzero(numbers == c)[:FEWEST_OF_A_CLASS] for c in np.flatnonzero(n_drawn < FEWEST_OF_A_CLASS)]
    return np.concatenate([drawn[:0], *rare])
