"""Ridge leverage scores, which say how unlike the other rows a row is: exact, by random probes, or by recursion."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.optimize import brentq
from sklearn.utils import check_random_state
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, as_tensor, row_slices, rows_per_block
from mercer.kernels import Kernel
from mercer.kernels.base import block_numbers
from mercer.landmarks.features import landmark_features, principal_coefficients
from mercer.linalg import cholesky, conjugate_gradients, gram

# The number of rows of the preconditioner. With 300, conjugate gradients on 2000 rows take 3 steps in place of 118
# (Gaussian kernel, effective dimension 150); rows with heavy tails need more.
PRECONDITIONER_ROWS = 500
# A ridge is chosen by the eigenvalues of 20 rows for each dimension, but of no fewer and no more rows than this. Up to
# 250 dimensions, the effective dimension is then at most 10 % too large for normal rows (n = 4000), 30 % for heavy
# tails, and 50 % if a twentieth of the rows are outliers.
RIDGE_ROWS = 500, 2000
# The smallest ridge that is chosen, relative to the largest eigenvalue; float64 is precise enough for scores below it.
SMALLEST_RIDGE = 1e-10
# Smaller scores are raised to this, so that nothing is divided by zero.
TINY_SCORE = 1e-200


def exact_scores(kernel: Kernel, X: Any, ridge: float, *, working_memory: float = WORKING_MEMORY) -> np.ndarray:
    """Return the ridge leverage scores l_j = (K (K + ridge n I)^-1)_jj of the rows of X (Rudi et al., 2017).

    l_j in [0, 1) is the weight of row j in its own prediction by kernel ridge regression. For a small ridge, it is near
    1 for a row that is unlike all others, and near 1/c for one of c equal rows. The sum of the scores is the effective
    dimension.

    Parameters
    ----------
    kernel : Kernel
        With a number for the bandwidth.
    X : array, memory map or tensor of shape (n, d)
    ridge : float
        Lambda; ridge * n is added to the diagonal of K.
    working_memory : float, default=64.0
        MiB for the temporaries of one block of rows.

    Returns
    -------
    scores of shape (n,), float64

    Notes
    -----
    O(n^3) time and O(n^2) memory. An eigendecomposition is used because it needs no jitter, however small the ridge.
    """
    K = kernel.matrix(as_tensor(X, dtype=torch.float64), working_memory=working_memory)
    values, vectors = torch.linalg.eigh(K)
    values = values.clamp(min=0.0)
    return (vectors.square() @ (values / (values + ridge * len(K)))).cpu().numpy()


def hutchinson_scores(
    kernel: Kernel,
    X: Any,
    ridge: float,
    *,
    n_probes: int = 64,
    tolerance: float = 1e-3,
    max_steps: int = 200,
    random_state: Any = None,
    working_memory: float = WORKING_MEMORY,
) -> np.ndarray:
    """Estimate ridge leverage scores by random signs (krepes, section 3.3): unbiased, but noisy for small scores.

    For random signs Pi of shape (n, s) and (K + ridge n I) Z = Pi, the mean over the s columns of Pi o (K Z) has the
    scores as its expectation. Its standard deviation is at most sqrt(l_j (1 - l_j) / s). This is small compared with
    l_j if the effective dimension is a large share of n, and larger than l_j if l_j < 1/s.

    Parameters
    ----------
    kernel, X, ridge, working_memory
        As in `exact_scores`.
    n_probes : int, default=64
        s, the number of columns of signs. The paper does not state its own.
    tolerance : float, default=1e-3
        The largest relative residual of a solve. The error of an entry of K Z is of about the same size, far below the
        noise of the signs.
    max_steps : int, default=200
        The most steps of conjugate gradients; if they do not suffice, there is a ConvergenceWarning.
    random_state : int, RandomState instance or None, default=None
        Draws the signs, and the rows of the preconditioner.

    Returns
    -------
    scores of shape (n,), float64
        Estimates that are no possible scores (most of these are negative) are moved to the nearest possible score. This
        raises small scores on average.

    Notes
    -----
    O(n^2 (d + s)) time for each step of conjugate gradients, and O(n (d + s)) memory beside the blocks: K is never
    formed as a whole. The Nyström preconditioner of at most 500 rows takes O(500^2 n) time once, and memory for 500 n
    numbers. With it 2 to 10 steps are usual, and 100 for a tiny ridge and rows with heavy tails.
    """
    random = check_random_state(random_state)
    x = as_tensor(X, dtype=torch.float64)
    n = len(x)
    rho = ridge * n
    signs = torch.from_numpy(2.0 * random.randint(2, size=(n, n_probes)) - 1.0).to(x.device)
    drawn = random.choice(n, min(n, PRECONDITIONER_ROWS), replace=False)

    def multiply(V: Tensor) -> Tensor:
        return landmark_features(kernel, x, x, V, working_memory=working_memory).add_(V, alpha=rho)

    precondition = _preconditioner(kernel, x, x[torch.from_numpy(drawn).to(x.device)], rho, working_memory)
    Z = conjugate_gradients(multiply, signs, precondition=precondition, tolerance=tolerance, max_steps=max_steps).x
    # K Z = Pi - rho Z. The paper takes the sum over the columns, and we the mean: the probabilities are the same, and
    # the mean is an estimate of the score itself.
    estimates = (signs * (signs - rho * Z)).mean(dim=1)
    return _possible(estimates, kernel.diagonal(x), rho).cpu().numpy()


def recursive_scores(
    kernel: Kernel,
    X: Any,
    ridge: float,
    *,
    n_sampled: int,
    random_state: Any = None,
    working_memory: float = WORKING_MEMORY,
) -> np.ndarray:
    """Estimate ridge leverage scores from a sample, which is drawn by the scores of half of the rows, recursively.

    Musco & Musco, "Recursive Sampling for the Nyström Method" (2017), algorithm 2 with the fixed sizes of algorithm 3.
    The score of a row is the part of k(x_j, x_j) that the sample does not explain, where each row of the sample counts
    for all the rows that it represents. The estimates are good if the effective dimension is well below `n_sampled`,
    such as a quarter of it.

    Parameters
    ----------
    kernel, X, ridge, working_memory
        As in `exact_scores`.
    n_sampled : int
        s, the number of rows of a sample. If n is at most s, the scores are exact.
    random_state : int, RandomState instance or None, default=None
        Draws the halves and the samples.

    Returns
    -------
    scores of shape (n,), float64

    Notes
    -----
    O(n s (d + s)) time, and O(n + s^2) memory beside the blocks. There are two departures from the paper: the rows of
    the half have a weight of 2, so that they represent all rows, and every row counts itself once (see
    `_scores_through`). The paper's proof, which is about overestimates, covers neither of them. On five columns, digits
    and outliers (n = 2000, s from 100 to 600, Gaussian and Laplace kernels), the sum of the scores is 2 to 16 % too
    large in place of 11 to 88 %. The correlation with the exact scores is higher as well: on digits with the Laplace
    kernel, .96 in place of .80.
    """
    random = check_random_state(random_state)
    n, rho = X.shape[0], ridge * X.shape[0]
    order = random.permutation(n)
    half = order if n <= n_sampled else order[: (n + 1) // 2]
    sampled, chances = _sample(kernel, X, half, rho, n_sampled, random, working_memory)
    return _scores_through(kernel, X, np.arange(n), sampled, chances * len(half) / n, rho, working_memory)


def ridge_of_dimension(kernel: Kernel, X: Any, dimension: float, random_state: Any = None) -> float:
    """Return the ridge for which the effective dimension sum_j l_j is about `dimension`; no labels are needed.

    Solves sum_i v_i / (v_i + ridge) = dimension, where v_i are the eigenvalues of K / q on q rows drawn at random,
    which are near those of K / n. q is 20 rows for each dimension, at least 500 and at most 2000. If there are more
    rows than q, a dimension above q / 4 counts as q / 4. If the kernel has fewer dimensions than asked for, the ridge
    is 1e-10 times the largest eigenvalue.

    Parameters
    ----------
    kernel : Kernel
        With a number for the bandwidth.
    X : array, memory map or tensor of shape (n, d)
    dimension : float
        Above 0.
    random_state : int, RandomState instance or None, default=None
        Draws the rows.

    Notes
    -----
    O(q^2 (d + q)).
    """
    n, (fewest, most) = X.shape[0], RIDGE_ROWS
    q = min(n, max(fewest, min(most, math.ceil(20 * dimension))))
    if q < n:
        X = X[np.sort(check_random_state(random_state).choice(n, q, replace=False))]
        dimension = min(dimension, q / 4)
    K = kernel.matrix(as_tensor(X, dtype=torch.float64))
    values = torch.linalg.eigvalsh(K).clamp(min=0.0).cpu().numpy() / q
    if not values[-1] > 0:
        return 1.0  # k(x, x) = 0 for all rows, so that every score is 0 under any ridge

    def excess(log_ridge: float) -> float:
        return float((values / (values + math.exp(log_ridge))).sum()) - dimension

    # Since v / (v + ridge) < v / ridge, the ridge at the upper end has too few dimensions.
    low, high = math.log(SMALLEST_RIDGE * values[-1]), math.log(values.sum() / dimension)
    return math.exp(brentq(excess, low, high)) if high > low and excess(low) > 0 else math.exp(low)


def draw_by_scores(scores: np.ndarray, wanted: int, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Draw `wanted` of n row numbers without replacement, each with a probability proportional to its score.

    The probability that a row is among those drawn is wanted * l_j / sum(l), or 1 if that is larger than 1; the other
    probabilities are then raised, so that they sum to `wanted`. If rows were drawn one after another by their scores,
    some rows that are unlike all others would be missed: with 200 landmarks for 1140 rows of a cluster and 60 outliers,
    the trace of the Nyström error was 20 times as large.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        l, none negative.
    wanted : int
        Below n.
    random : RandomState

    Returns
    -------
    rows, chances : ndarrays of shape (wanted,), in random order
        The row numbers, and the probabilities with which they were drawn.
    """
    scores = np.maximum(scores, TINY_SCORE)  # all may be 0
    sure = np.zeros(len(scores), dtype=bool)
    while True:
        chances = np.where(sure, 1.0, (wanted - sure.sum()) / scores[~sure].sum() * scores)
        if not (chances > 1.0).any():
            break
        sure |= chances > 1.0
    # Systematic sampling: the chances of the rows, in random order, are laid end to end on a line, and the rows at u,
    # u + 1, u + 2, ... are drawn, where u is random.
    order = random.permutation(len(scores))
    teeth = np.floor(np.cumsum(chances[order]) + random.uniform())
    drawn = order[np.diff(teeth, prepend=0.0) > 0]
    return drawn, chances[drawn]


def _sample(
    kernel: Kernel,
    X: Any,
    rows: np.ndarray,
    rho: float,
    n_sampled: int,
    random: np.random.RandomState,
    working_memory: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a sample of `rows`, which are in random order, and the chance of each row in it to be drawn.

    A row that is drawn with a chance represents 1 / chance rows.
    """
    if len(rows) <= n_sampled:
        return rows, np.ones(len(rows))
    half = rows[: (len(rows) + 1) // 2]
    sampled, chances = _sample(kernel, X, half, rho, n_sampled, random, working_memory)
    share = len(half) / len(rows)
    scores = _scores_through(kernel, X, rows, sampled, chances * share, rho, working_memory)
    drawn, chances = draw_by_scores(scores, n_sampled, random)
    return rows[drawn], chances


def _scores_through(
    kernel: Kernel,
    X: Any,
    rows: np.ndarray,
    sampled: np.ndarray,
    chances: np.ndarray,
    rho: float,
    working_memory: float,
) -> np.ndarray:
    """Return the scores of `rows`, estimated from a sample S in which a row represents 1 / chance rows.

    r_j = k_jj - k_j^T (K_SS + rho diag(chances))^-1 k_j is the variance of a Gaussian process at x_j given the sample,
    and r_j / rho is the paper's estimate. For a row that is unlike all others, it is too large by up to k_jj / rho if
    the row is not in S, and too small if it is in S, where it counts 1 / chance times. Precisions add up: with
    w_j = 1 / chance in S and 0 outside of it, 1 / r_j + (1 - w_j) / rho is the precision if row j counts once.
    """
    order = np.argsort(sampled)  # memory maps are faster to read in order
    sampled, chances = sampled[order], chances[order]
    weights = np.zeros(X.shape[0])
    weights[sampled] = 1.0 / chances
    z = as_tensor(X[sampled], dtype=torch.float64)
    A = kernel.matrix(z, working_memory=working_memory)
    A.diagonal().add_(rho * torch.from_numpy(chances).to(z.device))
    upper = cholesky(A).lower.T
    prepared = kernel.prepare(z)
    ascending = np.argsort(rows)
    unexplained, own = np.empty(len(rows)), np.empty(len(rows))
    bytes_per_row = (block_numbers(*z.shape) + len(z)) * z.element_size()
    for block in row_slices(len(rows), rows_per_block(len(rows), bytes_per_row, working_memory)):
        at = ascending[block]
        x = kernel.prepare(as_tensor(X[rows[at]], dtype=z.dtype, device=z.device), beside=prepared)
        explained = torch.linalg.solve_triangular(upper, kernel.values(x, prepared), upper=True, left=False)
        diagonal = kernel.prepared_diagonal(x)
        unexplained[at] = (diagonal - explained.square().sum(dim=1)).cpu().numpy()
        own[at] = diagonal.cpu().numpy()
    ratios = np.maximum(unexplained, 0.0) / rho
    scores = ratios / np.maximum(1.0 + ratios * (1.0 - weights[rows]), ratios)  # rounding must not raise them above 1
    return _possible(torch.from_numpy(scores), torch.from_numpy(own), rho).numpy()


def _possible(estimates: Tensor, diagonal: Tensor, rho: float) -> Tensor:
    """Return the estimates, clamped to the bounds of a score: k_jj / (tr K + rho) <= l_j <= k_jj / (k_jj + rho).

    The lower bound holds since K (K + rho I)^-1 is at least K / (tr K + rho), and the upper one since the weight of a
    row in its own prediction is largest if there are no other rows.
    """
    return torch.clamp(estimates, diagonal / (diagonal.sum() + rho), diagonal / (diagonal + rho))


def _preconditioner(
    kernel: Kernel, x: Tensor, z: Tensor, rho: float, working_memory: float
) -> Callable[[Tensor], Tensor]:
    """Return R -> (Phi Phi^T + rho I)^-1 R, where Phi Phi^T is the Nyström approximation of K with landmarks z."""
    Phi = landmark_features(kernel, x, z, principal_coefficients(kernel.matrix(z)), working_memory=working_memory)
    inner = gram(Phi)
    inner.diagonal().add_(rho)
    factor = cholesky(inner, warn=False)  # jitter changes only the preconditioner, not the solution
    return lambda R: (R - Phi @ factor.solve(Phi.T @ R)) / rho
