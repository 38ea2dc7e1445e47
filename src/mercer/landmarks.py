"""Landmarks: the few rows that stand for all, drawn uniformly or by k-means++."""

import warnings
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, as_tensor, walk
from mercer.checks import check_choice, check_count
from mercer.exceptions import DataWarning
from mercer.mahalanobis import Mahalanobis

METHODS = ("uniform", "kmeans++")
# Centres proposed at once by k-means++: enough for a fast matrix product, few enough that most are accepted.
PROPOSALS = 64


def choose_landmarks(
    X: Any,
    n_landmarks: int,
    method: str = "uniform",
    *,
    metric: Mahalanobis | None = None,
    random_state: Any = None,
    working_memory: float = WORKING_MEMORY,
) -> np.ndarray:
    """Return the indices of distinct rows of X to serve as landmarks, in rising order.

    Parameters
    ----------
    X : array, memory map or tensor of shape (n, d)
    n_landmarks : int
        How many. If X has fewer distinct rows, a DataWarning says so and all of those are returned.
    method : {"uniform", "kmeans++"}, default="uniform"
        "uniform" draws rows with equal chances; "kmeans++" with chances proportional to the squared distance to the
        nearest landmark so far.
    metric : Mahalanobis, optional
        The metric of those distances.
    random_state : int, RandomState instance or None, default=None
    working_memory : float, default=64.0
        MiB for the temporaries of one block of rows.
    """
    check_choice("landmarks", method, METHODS)
    wanted = check_count("n_landmarks", n_landmarks)
    random = check_random_state(random_state)
    if method == "uniform":
        chosen = _distinct_uniform(X, wanted, random)
    else:
        chosen = _kmeans_plus_plus(X, wanted, metric or Mahalanobis(), random, working_memory)
    if len(chosen) < wanted:
        warnings.warn(
            f"n_landmarks={wanted}, but the {X.shape[0]} rows hold only {len(chosen)} distinct ones: "
            f"{len(chosen)} landmarks are used.",
            DataWarning,
            stacklevel=2,
        )
    return np.sort(chosen)


def _distinct_uniform(X: Any, wanted: int, random: np.random.RandomState) -> np.ndarray:
    """Walk through the rows in random order and keep those not seen before, until there are enough."""
    order = random.permutation(X.shape[0])
    kept: list[int] = []
    seen: set[bytes] = set()
    step = max(wanted, 1024)
    for start in range(0, len(order), step):
        indices = order[start : start + step]
        sorted_rows = np.sort(indices)  # memory maps are read in order
        rows = as_tensor(X[sorted_rows]).cpu().numpy() + 0.0  # -0.0 and 0.0 are one value
        keys = dict(zip(sorted_rows, map(np.ndarray.tobytes, rows), strict=True))
        for index in indices:
            if keys[index] not in seen:
                seen.add(keys[index])
                kept.append(index)
                if len(kept) == wanted:
                    return np.array(kept, dtype=np.intp)
    return np.array(kept, dtype=np.intp)


def _kmeans_plus_plus(
    X: Any, wanted: int, metric: Mahalanobis, random: np.random.RandomState, working_memory: float
) -> np.ndarray:
    """Draw centres by the k-means++ rule exactly, many at a time.

    The rule draws x with chances D(x)^2, the squared distance to the nearest centre so far. Walking through the data
    after each centre would cost one pass a centre. Instead, a batch is proposed from the distances of the last pass,
    and each proposal is accepted with probability D_now(x)^2 / D_last(x)^2, where D_now takes the centres accepted
    meanwhile into account: rejection sampling, so the accepted ones follow the rule to the letter. The pass that
    follows is one matrix product for all of them.
    """
    n = X.shape[0]
    chosen = [int(random.randint(n))]
    centres = _rows(X, np.array(chosen))
    nearest = np.full(n, np.inf)
    while True:
        _lower_to_nearest(nearest, X, centres, metric, working_memory)
        mass = np.cumsum(nearest)
        if len(chosen) == wanted or not mass[-1] > 0:
            return np.array(chosen, dtype=np.intp)
        proposed = np.searchsorted(mass, random.uniform(size=PROPOSALS) * mass[-1], side="right")
        proposed = np.minimum(proposed, n - 1)
        rows = _rows(X, proposed)
        prepared = metric.prepare(rows)
        between = metric.squared_distances(prepared, prepared).cpu().numpy().astype(np.float64)
        accepted: list[int] = []
        for i, index in enumerate(proposed):
            now = min(nearest[index], *between[i, accepted]) if accepted else nearest[index]
            if len(chosen) < wanted and random.uniform() * nearest[index] < now:
                accepted.append(i)
                chosen.append(int(index))
        centres = rows[accepted]


def _rows(X: Any, indices: np.ndarray) -> Tensor:
    """Return some rows, read in order, since memory maps are."""
    order, back = np.unique(indices, return_inverse=True)
    return as_tensor(X[order])[torch.from_numpy(back.reshape(-1))]


def _lower_to_nearest(nearest: np.ndarray, X: Any, centres: Tensor, metric: Mahalanobis, working_memory: float) -> None:
    """Lower each row's squared distance to its nearest centre, in place, by the new centres; 0 for equal rows."""
    prepared = metric.prepare(centres)
    bytes_per_row = (3 * len(centres) + 3 * X.shape[1]) * centres.element_size()
    for rows, (x,) in walk(
        [X], bytes_per_row=bytes_per_row, working_memory=working_memory, dtype=centres.dtype, device=centres.device
    ):
        r2 = metric.squared_distances(metric.prepare(x, beside=prepared), prepared).amin(dim=1)
        np.minimum(nearest[rows], r2.cpu().numpy(), out=nearest[rows])
