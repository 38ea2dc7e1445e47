"""The classes of rows, wherever the labels are, and the rows by which choices are judged."""

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from mercer.blocks import Rows
from mercer.checks import distinct_classes
from mercer.discriminant.directions import Groups
from mercer.rows import MappedRows, gather_over_rows

# Discriminants of landmarks have values at no more rows than this, for each ridge that is tried: 200 000 tell log
# losses apart that differ in the third digit. Of each class there are so many among them, if it has them.
MOST_JUDGED, FEWEST_OF_A_CLASS = 200_000, 100


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
    return classes, numbers, MappedRows(y, class_numbers, (classes,))


def class_numbers(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the number of each label among the classes."""
    return np.searchsorted(classes, y).astype(np.int64)


def judged_rows(groups: Groups, random: np.random.RandomState) -> np.ndarray:
    """Return all rows, or `MOST_JUDGED` of them drawn at random and some of each class, in order."""
    n = len(groups.of_row)
    if n <= MOST_JUDGED:
        return np.arange(n)
    of_row = groups.of_row.cpu().numpy()
    drawn = random.choice(n, MOST_JUDGED, replace=False)
    found = np.bincount(of_row[drawn], minlength=len(groups.counts))
    rare = [np.flatnonzero(of_row == c)[:FEWEST_OF_A_CLASS] for c in np.flatnonzero(found < FEWEST_OF_A_CLASS)]
    return np.unique(np.concatenate([drawn, *rare]))
