"""Rows to learn from and rows to score on."""

import numpy as np
from sklearn.model_selection import train_test_split


def split(y: np.ndarray, task: str, test_size: float, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to fit on and the rows to score on, in order; classes have their share in both where they can.

    The only row of a class is always one to fit on: a class that no fit has seen cannot be predicted.

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
