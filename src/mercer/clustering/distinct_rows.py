"""Rows that are equal: which they are, and how many clusters there can be, no more than there are different ones."""

import hashlib
from typing import Any

import numpy as np

from mercer.checks import check_count
from mercer.exceptions import DataWarning, warn_user


def check_n_clusters(n_clusters: Any, X: np.ndarray) -> None:
    """Raise unless it is a count of at most the rows of X; warn if fewer of them are distinct.

    Parameters
    ----------
    n_clusters : int
    X : ndarray of shape (n, ...)
    """
    k = check_count("n_clusters", n_clusters, at_most=len(X), why="the number of rows")
    distinct = distinct_rows(X, enough=k)
    if distinct < k:
        warn_user(
            f"X has {distinct} distinct rows, fewer than n_clusters={k}: equal rows go to different clusters.",
            DataWarning,
        )


def distinct_rows(X: np.ndarray, enough: int) -> int:
    """Return how many rows differ; of data with more than enough, only so many rows are looked at."""
    seen: set[bytes] = set()
    # Adding 0 makes -0 and 0 the same bytes.
    for row in X:
        seen.add((row + 0).tobytes())
        if len(seen) == enough:
            break
    return len(seen)


def first_of_copies(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that no earlier one equals, and for each row which of these it equals.

    Parameters
    ----------
    X : ndarray of shape (n, ...)

    Returns
    -------
    first : ndarray of shape (m,)
        Indices into the rows, ascending.
    which : ndarray of shape (n,)
        X[first][which] is X.
    """
    places: dict[bytes, int] = {}
    first: list[int] = []
    which = np.empty(len(X), dtype=np.int64)
    for i, row in enumerate(X):
        mark = hashlib.blake2b((row + 0).tobytes(), digest_size=16).digest()
        if mark not in places:
            places[mark] = len(first)
            first.append(i)
        which[i] = places[mark]
    return np.array(first, dtype=np.int64), which
