"""Landmarks: the few rows that stand for all, drawn uniformly, by k-means++ or by ridge leverage scores."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, as_tensor, rows_per_block
from mercer.checks import check_choice, check_count, check_number
from mercer.exceptions import DataWarning, invalid_parameter, warn_user
from mercer.kernels import Kernel, check_kernel
from mercer.landmarks.leverage import (
    draw_by_scores,
    exact_scores,
    hutchinson_scores,
    recursive_scores,
    ridge_of_dimension,
)
from mercer.mahalanobis import Mahalanobis
from mercer.rows import map_over_rows

# Those whose chances depend on the kernel.
KERNEL_METHODS = ("leverage", "leverage_hutchinson")
METHODS = ("uniform", "kmeans++", *KERNEL_METHODS)
# Up to this many rows, exact leverage scores take less than a second.
EXACT_ROWS = 1000
# The bounds of the samples behind estimated scores: two rows a landmark within them.
SAMPLED_ROWS = 200, 2000
# Centers proposed at once by k-means++: enough for a fast matrix product, few enough that most are accepted.
PROPOSALS = 64


def choose_landmarks(
    X: Any,
    n_landmarks: int,
    method: str = "uniform",
    *,
    metric: Mahalanobis | None = None,
    kernel: Any = None,
    ridge: float | None = None,
    random_state: Any = None,
    working_memory: float = WORKING_MEMORY,
) -> np.ndarray:
    """Return the indices of distinct rows of X to serve as landmarks, in rising order.

    Parameters
    ----------
    X : array, memory map or tensor of shape (n, d)
    n_landmarks : int
        How many. If X has fewer distinct rows, a DataWarning says so and all of those are returned.
    method : {"uniform", "kmeans++", "leverage", "leverage_hutchinson"}, default="uniform"
        "uniform" draws rows with equal chances; "kmeans++" with chances proportional to the squared distance to the
        nearest landmark so far. The other two draw with chances proportional to ridge leverage scores, of a group of
        equal rows to the sum of theirs: rows that are like no other are landmarks, and one of many alike is enough.
        "leverage", the one to use, estimates them by recursive sampling, in O(n m^2) for m landmarks up to 1000 and in
        O(n) 2000^2 beyond; "leverage_hutchinson" as the paper does (krepes, section 3.3), in O(n^2) a step of
        conjugate gradients, unbiased but noisy unless the landmarks are a good part of the rows. Up to 1000 rows both
        are exact, and so the same.
    metric : Mahalanobis, optional
        The metric of the distances of "kmeans++".
    kernel : str, Kernel or callable, optional
        The kernel of the leverage scores, which need one; "median" bandwidths are resolved on X.
    ridge : float, optional
        Lambda of the leverage scores (K (K + lambda n I)^-1)_jj. By default such that their sum, the effective
        dimension, is about half the number of landmarks, and at most 500 if there are more than 2000 rows: so the
        landmarks are twice the directions that are above the ridge. See `mercer.landmarks.leverage.ridge_of_dimension`.
    random_state : int, RandomState instance or None, default=None
    working_memory : float, default=64.0
        MiB for the temporaries of one block of rows.
    """
    check_choice("landmarks", method, METHODS)
    wanted = check_count("n_landmarks", n_landmarks)
    random = check_random_state(random_state)
    if method in KERNEL_METHODS and kernel is None:
        raise invalid_parameter("kernel", kernel, f"given if landmarks={method!r}: the scores are of a kernel")
    if ridge is not None:
        check_number("ridge", ridge, above=0.0)
    if method == "uniform":
        chosen = _first_distinct(X, wanted, random.permutation(X.shape[0]))
    elif method in KERNEL_METHODS:
        order = _by_leverage(X, wanted, method, check_kernel(kernel), ridge, random, working_memory)
        chosen = _first_distinct(X, wanted, order)
    else:
        chosen = _kmeans_plus_plus(X, wanted, metric or Mahalanobis(), random, working_memory)
    if len(chosen) < wanted:
        warn_user(
            f"n_landmarks={wanted}, but the {X.shape[0]} rows hold only {len(chosen)} distinct ones: "
            f"{len(chosen)} landmarks are used.",
            DataWarning,
        )
    return np.sort(chosen)


def _first_distinct(X: Any, wanted: int, order: np.ndarray) -> np.ndarray:
    """Walk through the rows in the given order and keep those not seen before, until there are enough."""
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


def _by_leverage(
    X: Any,
    wanted: int,
    method: str,
    kernel: Kernel,
    ridge: float | None,
    random: np.random.RandomState,
    working_memory: float,
) -> np.ndarray:
    """Return all rows: first those drawn by their leverage scores, then those that follow where some are equal."""
    n = X.shape[0]
    kernel = kernel.resolved(X, random)
    if wanted >= n:
        return random.permutation(n)  # every row will be taken
    if ridge is None:
        ridge = ridge_of_dimension(kernel, X, wanted / 2, random)
    if n <= EXACT_ROWS:
        scores = exact_scores(kernel, X, ridge, working_memory=working_memory)
    elif method == "leverage":
        fewest, most = SAMPLED_ROWS
        scores = recursive_scores(
            kernel,
            X,
            ridge,
            n_sampled=min(most, max(fewest, 2 * wanted)),
            random_state=random,
            working_memory=working_memory,
        )
    else:
        scores = hutchinson_scores(kernel, X, ridge, random_state=random, working_memory=working_memory)
    drawn, _ = draw_by_scores(scores, wanted, random)
    # Exponential waiting times: who comes first, second, ... are draws one after another by the rates. Rows with
    # k(x, x) = 0 come last, but they come.
    waiting = random.exponential(size=n) / np.maximum(scores, 1e-200)
    waiting[drawn] = -1.0
    return np.argsort(waiting, kind="stable")


def _kmeans_plus_plus(
    X: Any, wanted: int, metric: Mahalanobis, random: np.random.RandomState, working_memory: float
) -> np.ndarray:
    """Draw centers by the k-means++ rule exactly, many at a time.

    The rule draws x with chances D(x)^2, the squared distance to the nearest center so far. Walking through the data
    after each center would cost one pass a center. Instead, a batch is proposed from the distances of the last pass,
    and each proposal is accepted with probability D_now(x)^2 / D_last(x)^2, where D_now takes the centers accepted
    meanwhile into account: rejection sampling, so the accepted ones follow the rule to the letter. The pass that
    follows is one matrix product for all of them.
    """
    n = X.shape[0]
    chosen = [int(random.randint(n))]
    centers = _rows(X, np.array(chosen))
    nearest = np.full(n, np.inf)
    while True:
        _lower_to_nearest(nearest, X, centers, metric, working_memory)
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
        centers = rows[accepted]


def _rows(X: Any, indices: np.ndarray) -> Tensor:
    """Return some rows, read in order, since memory maps are."""
    order, back = np.unique(indices, return_inverse=True)
    return as_tensor(X[order])[torch.from_numpy(back.reshape(-1))]


def _lower_to_nearest(nearest: np.ndarray, X: Any, centers: Tensor, metric: Mahalanobis, working_memory: float) -> None:
    """Lower each row's squared distance to its nearest center, in place, by the new centers; 0 for equal rows."""
    bytes_per_row = (3 * len(centers) + 3 * X.shape[1]) * centers.element_size()
    rows_a_block = rows_per_block(X.shape[0], bytes_per_row, working_memory)
    (r2,) = map_over_rows(
        distances_to_nearest,
        (centers, metric),
        X,
        rows_a_block=rows_a_block,
        dtype=centers.dtype,
        device=centers.device,
    )
    np.minimum(nearest, r2, out=nearest)


def distances_to_nearest(centers: Tensor, metric: Mahalanobis) -> Callable[[Tensor], tuple[Tensor]]:
    """Return rows -> the squared distance of each to the nearest center."""
    prepared = metric.prepare(centers)
    return lambda x: (metric.squared_distances(metric.prepare(x, beside=prepared), prepared).amin(dim=1),)
