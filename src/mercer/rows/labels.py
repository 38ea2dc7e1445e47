"""The classes of rows, wherever the labels are, and rows drawn so that every class is among them."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from mercer.blocks import Rows
from mercer.checks import distinct_classes
from mercer.rows.loop import gather_over_rows
from mercer.rows.sources import MappedRows

# Of each class there are so many among rows that are drawn, if it has them.
FEWEST_OF_A_CLASS = 100


def numbered_classes(y: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the classes in order, the number of each row's class, and these numbers as a source beside the rows.

    Labels that are elsewhere are read twice; their numbers, eight bytes a row, are kept here as well.
    """
    if not isinstance(y, Rows):
        distinct_classes(y)  # first: scikit-learn has no word for classes that do not compare
        check_classification_targets(y)
        classes, index = distinct_classes(y, return_inverse=True)
        numbers = index.astype(np.int64)
        return classes, numbers, numbers
    classes = distinct_classes(np.concatenate(gather_over_rows(distinct_classes, (), y)))
    check_classification_targets(classes)
    numbers = np.concatenate(gather_over_rows(class_numbers, (classes,), y))
    return classes, numbers, MappedRows(class_numbers, (classes,), y)


def class_numbers(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the number of each label among the classes."""
    return np.searchsorted(classes, y).astype(np.int64)


def drawn_with_classes(numbers: np.ndarray, n_classes: int, most: int, random: np.random.RandomState) -> np.ndarray:
    """Return all rows, or `most` of them drawn at random and a hundred of each class, in order."""
    n = len(numbers)
    if n <= most:
        return np.arange(n)
    drawn = random.choice(n, most, replace=False)
    found = np.bincount(numbers[drawn], minlength=n_classes)
    rare = [np.flatnonzero(numbers == c)[:FEWEST_OF_A_CLASS] for c in np.flatnonzero(found < FEWEST_OF_A_CLASS)]
    return np.unique(np.concatenate([drawn, *rare]))
