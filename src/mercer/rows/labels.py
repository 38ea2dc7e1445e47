"""The classes of rows, wherever the labels are, and rows drawn so that every class is among them."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from mercer.blocks import Rows
from mercer.checks import distinct_classes
from mercer.rows.cluster import cluster_of
from mercer.rows.loop import gather_over_rows
from mercer.rows.sources import MappedRows

# Of each class there are so many among rows that are drawn, if it has them.
FEWEST_OF_A_CLASS = 100


def numbered_classes(y: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the classes in order, the number of each row's class, and these numbers as a source beside the rows.

    Labels that are elsewhere are read once; their numbers, eight bytes a row, are kept here. Workers, where there are
    any, read the labels again beside the rows: nothing of the size of the data is sent to them.
    """
    if not isinstance(y, Rows):
        distinct_classes(y)  # first: scikit-learn has no word for classes that do not compare
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
    """Return the different labels of some rows, and the number of each row's among them, in four bytes."""
    own, index = distinct_classes(y, return_inverse=True)
    return own, index.astype(np.int32)


def class_numbers(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the number of each label among the classes."""
    return np.searchsorted(classes, y).astype(np.int64)


def drawn_with_classes(numbers: np.ndarray, n_classes: int, most: int, random: np.random.RandomState) -> np.ndarray:
    """Return all rows, or `most` of them drawn at random and a hundred of each class, in order."""
    n = len(numbers)
    if n <= most:
        return np.arange(n)
    drawn = random.choice(n, most, replace=False)
    return np.union1d(drawn, some_of_rare_classes(numbers, n_classes, drawn))


def some_of_rare_classes(numbers: np.ndarray, n_classes: int, drawn: np.ndarray) -> np.ndarray:
    """Return a hundred rows of each class of which fewer were drawn, or all that it has."""
    found = np.bincount(numbers[drawn], minlength=n_classes)
    rare = [np.flatnonzero(numbers == c)[:FEWEST_OF_A_CLASS] for c in np.flatnonzero(found < FEWEST_OF_A_CLASS)]
    return np.concatenate([drawn[:0], *rare])
