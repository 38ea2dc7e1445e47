"""Ridge leverage scores: how much of each row the others cannot say. Exact, by Hutchinson's probes, by recursion."""

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

# Rows of the preconditioner. 300 bring conjugate gradients on 2000 rows from 118 steps to 3 (Gaussian kernel, effective
# dimension 150); heavy tails want more.
PRECONDITIONER_ROWS = 500
# The spectrum behind a ridge is that of 20 rows a dimension, within these bounds: up to 250 dimensions then come out at
# most 10 % too many for normal rows (n = 4000), 30 % for heavy tails, 50 % if a twentieth of the rows are outliers.
RIDGE_ROWS = 500, 2000
# The smallest ridge that is ever chosen, relative to the largest eigenvalue: float64 carries the scores beyond it.
SMALLEST_RIDGE = 1e-10


def exact_scores(kernel: Kernel, X: Any, ridge: float, *, working_memory: float = WORKING_MEMORY) -> np.ndarray:
    """Return the ridge leverage scores l_j = (K (K + ridge n I)^-1)_jj of the rows of X (Rudi et al., 2017).

    l_j in [0, 1) is the weight that row j has in its own prediction by kernel ridge regression. If the ridge is small:
    near 1 for a row that is like no other, near 1/c for one of c copies. The sum is the effective dimension.

    Parameters
    ----------
    kernel : Kernel
        With a number for the bandwidth.
    X : array, memory map or tensor of shape (n, d)
    ridge : float
        Lambda: ridge * n is what is added to the diagonal.
    working_memory : float, default=64.0
        MiB for the temporaries of one block of rows.

    Returns
    -------
    scores of shape (n,), float64

    Notes
    -----
    O(n^3) time and O(n^2) memory, by an eigendecomposition: it needs no jitter, however small the ridge.
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
    """Estimate ridge leverage scores by random signs (krepes, section 3.3): unbiased, noisy where scores are small.

    With signs Pi of shape (n, s) and (K + ridge n I) Z = Pi, the mean over the s columns of Pi o (K Z) has the scores
    as its expectation, and a standard deviation of at most sqrt(l_j (1 - l_j) / s): small beside l_j where the
    effective dimension is a good part of n, and larger than l_j where l_j < 1/s.

    Parameters
    ----------
    kernel, X, ridge, working_memory
        As in `exact_scores`.
    n_probes : int, default=64
        s. The paper does not say its own.
    tolerance : float, default=1e-3
        For the relative residuals of the solves. An entry of K Z is then wrong by about as much, far less than the
        probes' noise.
    max_steps : int, default=200
        Of conjugate gradients; a ConvergenceWarning says if they did not suffice.
    random_state : int, RandomState instance or None, default=None
        Draws the signs, and the rows of the preconditioner.

    Returns
    -------
    scores of shape (n,), float64
        Estimates outside of what a score can be (negative ones above all) are moved to the nearest value that it can,
        which raises small scores on average.

    Notes
    -----
    O(n^2 (d + s)) time a step of conjugate gradients, and O(n (d + s)) memory beside the blocks: K is never whole. The
    Nyström preconditioner, of at most 500 rows, costs 500^2 n once and holds 500 n numbers; 2 to 10 steps are usual
    then, 100 where a tiny ridge meets heavy tails.
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
    # K Z = Pi - rho Z. The paper adds up where we take the mean: the chances are the same, and a mean is a score.
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
    """Estimate ridge leverage scores from a sample drawn by the scores of half of the rows, and so on down.

    Musco & Musco, "Recursive Sampling for the Nyström Method" (2017), algorithm 2 with the fixed sizes of algorithm 3.
    A row's score is what is left of k(x_j, x_j) after the sample, each of whose rows counts as often as it stands for
    others. Good where the effective dimension is well below `n_sampled`; a quarter of it serves.

    Parameters
    ----------
    kernel, X, ridge, working_memory
        As in `exact_scores`.
    n_sampled : int
        s, the rows of a sample. If n is no larger, the scores are exact.
    random_state : int, RandomState instance or None, default=None
        Draws the halves and the samples.

    Returns
    -------
    scores of shape (n,), float64

    Notes
    -----
    O(n s (d + s)) time; O(n + s^2) memory beside the blocks. Departures from the paper: the half stands for the whole
    with a weight of 2, and every row counts itself once (see `_scores_through`). Neither carries the paper's proof,
    which is of overestimates; on five columns, digits and outliers (n = 2000, s from 100 to 600, Gaussian and Laplace
    kernels) the sum of the scores is 2 to 16 % too large in place of 11 to 88 %, and the correlation with the exact
    ones rises, on digits with the Laplace kernel from .80 to .96.
    """
    random = check_random_state(random_state)
    n, rho = X.shape[0], ridge * X.shape[0]
    order = random.permutation(n)
    half = order if n <= n_sampled else order[: (n + 1) // 2]
    sampled, chances = _sample(kernel, X, half, rho, n_sampled, random, working_memory)
    return _scores_through(kernel, X, np.arange(n), sampled, chances * len(half) / n, rho, working_memory)


def ridge_of_dimension(kernel: Kernel, X: Any, dimension: float, random_state: Any = None) -> float:
    """Return the ridge under which the effective dimension sum_j l_j is about `dimension`; no labels are needed.

    Solves sum_i v_i / (v_i + ridge) = dimension, v_i the eigenvalues of K / q on q rows drawn at random, which are near
    those of K / n. q is 20 rows a dimension, at least 500 and at most 2000; if there are more rows than that,
    dimensions above q / 4 count as q / 4. Where the kernel has not as many dimensions, the ridge is 1e-10 of v_1.

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

    # v / (v + ridge) < v / ridge, so that the upper end has too few dimensions.
    low, high = math.log(SMALLEST_RIDGE * values[-1]), math.log(values.sum() / dimension)
    return math.exp(brentq(excess, low, high)) if high > low and excess(low) > 0 else math.exp(low)


def draw_by_scores(scores: np.ndarray, wanted: int, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Draw `wanted` of n places without replacement, each with a chance proportional to its score.

    The chance is that of being among them, wanted * l_j / sum(l), and 1 where that is more; the others share what is
    left. Draws one after another by the scores would leave out some rows that stand alone: with 200 landmarks for
    1140 rows of a cluster and 60 outliers, the trace of the Nyström error was 20 times as large.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        l, none negative.
    wanted : int
        Below n.
    random : RandomState

    Returns
    -------
    places, chances : ndarrays of shape (wanted,), in random order
    """
    scores = np.maximum(scores, 1e-200)  # all may be 0
    sure = np.zeros(len(scores), dtype=bool)
    while True:
        chances = np.where(sure, 1.0, (wanted - sure.sum()) / scores[~sure].sum() * scores)
        if not (chances > 1.0).any():
            break
        sure |= chances > 1.0
    # A comb with one tooth a unit of chance, laid over the rows in random order.
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
    """Return some of `rows`, which are in random order, and the chances they had: each stands for 1 / chance rows."""
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
    """Return the scores of some rows, as a sample S of rows that stand for 1 / chance each sees them.

    r_j = k_jj - k_j^T (K_SS + rho diag(chances))^-1 k_j is the variance of a Gaussian process at x_j after the sample,
    and r_j / rho the paper's estimate: too large by up to k_jj / rho for a row out of S that is like no other, and too
    small for such a row in S, which counts 1 / chance times. Precisions add up, so that 1 / r_j + (1 - w_j) / rho is
    that of a row which counts itself once, w_j = 1 / chance in S and 0 out of it.
    """
    order = np.argsort(sampled)  # memory maps are read in order
    sampled, chances = sampled[order], chances[order]
    weights = np.zeros(X.shape[0])
    weights[sampled] = 1.0 / chances
    z = as_tensor(X[sampled], dtype=torch.float64)
    A = kernel.matrix(z, working_memory=working_memory)
    A.diagonal().add_(rho * torch.from_numpy(chances).to(z.device))
    upper = cholesky(A).lower.T
    prepared = kernel.prepare(z)
    ascending = np.argsort(rows)
    left, own = np.empty(len(rows)), np.empty(len(rows))
    bytes_per_row = (block_numbers(*z.shape) + len(z)) * z.element_size()
    for block in row_slices(len(rows), rows_per_block(len(rows), bytes_per_row, working_memory)):
        at = ascending[block]
        x = kernel.prepare(as_tensor(X[rows[at]], dtype=z.dtype, device=z.device), beside=prepared)
        explained = torch.linalg.solve_triangular(upper, kernel.values(x, prepared), upper=True, left=False)
        diagonal = kernel.prepared_diagonal(x)
        left[at] = (diagonal - explained.square().sum(dim=1)).cpu().numpy()
        own[at] = diagonal.cpu().numpy()
    ratios = np.maximum(left, 0.0) / rho
    scores = ratios / np.maximum(1.0 + ratios * (1.0 - weights[rows]), ratios)  # rounding must not bring them above 1
    return _possible(torch.from_numpy(scores), torch.from_numpy(own), rho).numpy()


def _possible(estimates: Tensor, diagonal: Tensor, rho: float) -> Tensor:
    """Return the estimates, moved into the bounds of a score: k_jj / (tr K + rho) <= l_j <= k_jj / (k_jj + rho).

    K (K + rho I)^-1 is at least K / (tr K + rho); and a row's weight in its own prediction is largest if it is alone.
    """
    return torch.clamp(estimates, diagonal / (diagonal.sum() + rho), diagonal / (diagonal + rho))


def _preconditioner(
    kernel: Kernel, x: Tensor, z: Tensor, rho: float, working_memory: float
) -> Callable[[Tensor], Tensor]:
    """Return R -> (Phi Phi^T + rho I)^-1 R, Phi Phi^T the Nyström approximation of K with the rows z as landmarks."""
    Phi = landmark_features(kernel, x, z, principal_coefficients(kernel.matrix(z)), working_memory=working_memory)
    inner = gram(Phi)
    inner.diagonal().add_(rho)
    factor = cholesky(inner, warn=False)  # whatever is added, the solution is that of K
    return lambda R: (R - Phi @ factor.solve(Phi.T @ R)) / rho
