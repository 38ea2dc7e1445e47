"""The choice of landmarks, a few rows that represent all: uniform, by k-means++ or by ridge leverage scores."""

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
    TINY_SCORE,
    draw_by_scores,
    exact_scores,
    hutchinson_scores,
    recursive_scores,
    ridge_of_dimension,
)
from mercer.mahalanobis import Mahalanobis
from mercer.rows import map_over_rows

# The methods whose probabilities depend on the kernel.
KERNEL_METHODS = ("leverage", "leverage_hutchinson")
METHODS = ("uniform", "kmeans++", *KERNEL_METHODS)
# Up to this many rows the leverage scores are exact, which takes less than a second.
EXACT_ROWS = 1000
# Scores are estimated from two rows for each landmark, but from no fewer and no more rows than this.
SAMPLED_ROWS = 200, 2000
# How many centers k-means++ proposes at once: enough for a fast matrix product, few enough that most are accepted.
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
    """Choose m distinct rows of X as landmarks, and return their row numbers in rising order.

    Parameters
    ----------
    X : array, memory map or tensor of shape (n, d)
    n_landmarks : int
        m. If X has fewer distinct rows, all of them are returned, with a DataWarning.
    method : {"uniform", "kmeans++", "leverage", "leverage_hutchinson"}, default="uniform"
        "uniform" draws rows with equal probabilities, "kmeans++" with probabilities proportional to the squared
        distance to the nearest landmark so far. The other two draw with probabilities proportional to ridge leverage
        scores; for a group of equal rows, to the sum of their scores. Rows that are unlike all others then become
        landmarks, and one row of many similar ones is enough. "leverage" is the recommended one of the two: it
        estimates the scores by recursive sampling, in O(n m^2) for m up to 1000 landmarks and O(n 2000^2) beyond.
        "leverage_hutchinson" estimates them as the paper does (krepes, section 3.3), in O(n^2) for each step of
        conjugate gradients; this is unbiased, but noisy unless a large share of the rows are landmarks. Up to 1000 rows
        both use exact scores, and so are the same.
    metric : Mahalanobis, optional
        The metric of the distances in "kmeans++"; the Euclidean one by default.
    kernel : str, Kernel or callable, optional
        The kernel of the leverage scores, for which it is required. A bandwidth of "median" is computed from X.
    ridge : float, optional
        Lambda in the leverage scores (K (K + lambda n I)^-1)_jj. By default it is such that their sum, the effective
        dimension, is about half the number of landmarks, and at most 500 if there are more than 2000 rows. There are
        then twice as many landmarks as directions above the ridge. See `mercer.landmarks.leverage.ridge_of_dimension`.
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
    """Return the first `wanted` row numbers in `order` whose rows differ from all rows before, or all such numbers."""
    kept: list[int] = []
    seen: set[bytes] = set()
    step = max(wanted, 1024)
    for start in range(0, len(order), step):
        indices = order[start : start + step]
        sorted_rows = np.sort(indices)  # memory maps are faster to read in order
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
    """Return all row numbers: first those drawn by leverage scores, then the others, which replace equal rows."""
    n = X.shape[0]
    kernel = kernel.resolved(X, random)
    if wanted >= n:
        return random.permutation(n)  # every distinct row will be a landmark
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
    # The other rows are ordered by exponential waiting times with the scores as rates, which is the order of draws one
    # after another by the scores. Rows with k(x, x) = 0 come last.
    waiting = random.exponential(size=n) / np.maximum(scores, TINY_SCORE)
    waiting[drawn] = -1.0
    return np.argsort(waiting, kind="stable")


def _kmeans_plus_plus(
    X: Any, wanted: int, metric: Mahalanobis, random: np.random.RandomState, working_memory: float
) -> np.ndarray:
    """Draw centers by exactly the k-means++ rule, many at a time.

    The rule draws x with a probability proportional to D(x)^2, the squared distance to the nearest center so far. Done
    one by one, each center would need a pass over the data. Instead, a batch is proposed from the distances of the last
    pass. Each proposal is accepted with probability D_now(x)^2 / D_last(x)^2, where D_now includes the centers accepted
    since. This is rejection sampling, so that the accepted centers have exactly the distribution of the rule. The next
    pass is one matrix product for all of them.
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
    """Return the rows with these numbers as a tensor; they are read in order, which is faster for memory maps."""
    order, back = np.unique(indices, return_inverse=True)
    return as_tensor(X[order])[torch.from_numpy(back.reshape(-1))]


def _lower_to_nearest(nearest: np.ndarray, X: Any, centers: Tensor, metric: Mahalanobis, working_memory: float) -> None:
    """Update each row's squared distance to its nearest center, in place, for new centers; it is 0 for equal rows."""
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
