"""Equal rows: finding them, and checking the number of clusters against the number of distinct rows."""

import hashlib
from typing import Any

import numpy as np

from mercer.checks import check_count
from mercer.exceptions import DataWarning, warn_user


def check_n_clusters(n_clusters: Any, X: np.ndarray) -> None:
    """Raise unless `n_clusters` is between 1 and the number of rows; warn if it exceeds that of distinct rows.

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
    """Return the number of distinct rows; the count stops when it reaches `enough`."""
    seen: set[bytes] = set()
    # Adding 0 makes -0 and 0 the same bytes.
    for row in X:
        seen.add((row + 0).tobytes())
        if len(seen) == enough:
            break
    return len(seen)


def first_of_copies(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each set of equal rows, and for each row the position of its first copy among these.

    Parameters
    ----------
    X : ndarray of shape (n, ...)

    Returns
    -------
    first : ndarray of shape (m,)
        Row numbers, ascending.
    which : ndarray of shape (n,)
        X[first][which] equals X.
    """
    places: dict[bytes, int] = {}
    first: list[int] = []
    which = np.empty(len(X), dtype=np.int64)
    for i, row in enumerate(X):
        digest = hashlib.blake2b((row + 0).tobytes(), digest_size=16).digest()
        if digest not in places:
            places[digest] = len(first)
            first.append(i)
        which[i] = places[digest]
    return np.array(first, dtype=np.int64), which
