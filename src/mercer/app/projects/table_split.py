"""Split rows into those to learn from and those to score on: at random, by time, or by whole groups."""

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

# Groups are drawn at most this often, until rows of every class are left to learn from.
MOST_DRAWS = 20


@dataclass(frozen=True, eq=False)
class SplitPlan:
    """How rows are split, and why.

    Attributes
    ----------
    kind : {"random", "time", "group"}
    column : str or None
        The column by which they are split.
    reason : str
    times : ndarray of shape (n,) or None
        For "time": a number for each row, larger for later rows.
    groups : ndarray of int of shape (n,) or None
        The group of each row. All rows of a group are on one side. Given for "group", and for "random" if rows have
        copies.
    """

    kind: str
    column: str | None
    reason: str
    times: np.ndarray | None = None
    groups: np.ndarray | None = None


AT_RANDOM = SplitPlan("random", None, "asked for")


def split_rows(
    y: np.ndarray, task: str, test_size: float, random: np.random.RandomState, plan: SplitPlan = AT_RANDOM
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to learn from and the rows to score on, both in order, split according to a plan.

    Parameters
    ----------
    y : ndarray of shape (n,)
    task : {"regression", "classification"}
    test_size : float
        The share of rows to score on.
    random : RandomState
    plan : SplitPlan
    """
    if plan.times is None and plan.groups is None:
        return split(y, task, test_size, random)
    n_test = max(1, round(test_size * len(y)))
    if plan.times is not None:
        is_test = _are_later(plan.times, n_test)
    else:
        is_test = _are_in_drawn_groups(y, task, plan.groups, n_test, random)  # type: ignore[arg-type]
    train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    if len(train) < 2 or not len(test) or (task == "classification" and len(np.unique(y[train])) < 2):
        by = "time" if plan.times is not None else "groups"
        raise ValueError(
            f"test_size={test_size:g} of {len(y)} rows, split by {by}, leaves {len(train)} rows to learn from, too few "
            "or of one class: use more rows, another split, or test_size=0."
        )
    return train, test


def _are_later(times: np.ndarray, n_test: int) -> np.ndarray:
    """Return which rows are the last in time. Rows of the same time are on the same side."""
    first = np.sort(times)[len(times) - n_test]
    later = times >= first
    return later if not later.all() else times > first


def _are_in_drawn_groups(
    y: np.ndarray, task: str, groups: np.ndarray, n_test: int, random: np.random.RandomState
) -> np.ndarray:
    """Return which rows to score on: those of groups that are drawn until there are about n_test rows."""
    sizes = np.bincount(groups)
    is_test = np.zeros(len(y), dtype=bool)
    for _ in range(MOST_DRAWS):
        drawn: list[int] = []
        count = 0
        for group in random.permutation(len(sizes)):
            if sizes[group] and (not drawn or count + sizes[group] <= n_test):
                drawn.append(int(group))
                count += int(sizes[group])
        is_test = np.isin(groups, drawn)
        if task != "classification" or len(np.unique(y[~is_test])) == len(np.unique(y)):
            break
    return is_test


def split(y: np.ndarray, task: str, test_size: float, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Return random rows to learn from and to score on, both in order, with the same shares of classes if possible.

    The only row of a class is always among those to learn from: a class that a fit has not seen cannot be predicted.

    Parameters
    ----------
    y : ndarray of shape (n,)
    task : {"regression", "classification"}
    test_size : float
        The share of rows to score on.
    random : RandomState
    """
    n_test = max(1, round(test_size * len(y)))
    alone, labels = np.zeros(len(y), dtype=bool), None
    if task == "classification":
        _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        alone = counts[codes] == 1
        labels = codes[~alone]
    n_train = int((~alone).sum()) - n_test
    if n_train < 1 or len(y) - n_test < 2:
        raise ValueError(
            f"test_size={test_size:g} of {len(y)} rows leaves too few to learn from: use more rows, or test_size=0."
        )
    if labels is not None and len(np.unique(labels)) > min(n_train, n_test):
        labels = None
    rows = np.arange(len(y))
    train, test = train_test_split(rows[~alone], test_size=n_test, stratify=labels, random_state=random)
    return np.sort(np.concatenate([train, rows[alone]])), np.sort(test)
