"""Settings (kernel, bandwidth, metric, ridge) compared by closed-form leave-one-out: no validation set is needed."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls
from sklearn.utils import check_random_state
from torch import Tensor

from mercer.checks import check_choice, check_count
from mercer.kernels import Kernel
from mercer.linalg import RidgeSolution, ridge_path

# The most steps of a climb at one stride.
MOST_STEPS = 10


def squared_error_score(solution: RidgeSolution, y: Tensor, weights: Tensor) -> float:
    """Return minus the weighted mean of the squared leave-one-out errors, over all outputs."""
    squares = solution.residuals.reshape(len(y), -1).square().mean(dim=1)
    return -float(weights @ squares / weights.sum())


def log_density_score(solution: RidgeSolution, y: Tensor, weights: Tensor) -> float:
    """Return the mean log density of each y_i under the Gaussian process fitted without it.

    The prior is y ~ N(0, s A), A = K + ridge W^-1, so that y_i is predicted with variance s / (A^-1)_ii. The output
    scale s, one an output, is the one that maximizes the score: the mean of the squared errors over the variances.
    """
    variances = solution.variances[:, None]
    scaled = solution.residuals.reshape(len(y), -1).square() / variances
    s = (weights @ scaled / weights.sum()).clamp(min=torch.finfo(y.dtype).tiny)
    log_densities = -0.5 * (torch.log(2 * math.pi * s * variances) + scaled / s)
    return float(weights @ log_densities.mean(dim=1) / weights.sum())


def accuracy_score(solution: RidgeSolution, y: Tensor, weights: Tensor) -> float:
    """Return the weighted share of rows whose class, the largest of the outputs, is right when left out.

    y holds a column a class, the largest entry at the row's class; with one column the sign is the class.
    """
    predictions = y - solution.residuals
    if y.ndim == 1 or y.shape[1] == 1:
        right = (predictions > 0).reshape(len(y)) == (y > 0).reshape(len(y))
    else:
        right = predictions.argmax(dim=1) == y.argmax(dim=1)
    return float(weights @ right.to(weights.dtype) / weights.sum())


CRITERIA: dict[str, Callable[[RidgeSolution, Tensor, Tensor], float]] = {
    "squared_error": squared_error_score,
    "log_density": log_density_score,
    "accuracy": accuracy_score,
}


@dataclass(frozen=True)
class Candidate:
    """One choice: a kernel with numbers for all its parameters, a ridge, and what the caller wants to remember.

    The kernel is None where its matrix was given.

    `score` is the leave-one-out score (larger is better) and `solution` the fit behind it, once it is evaluated.
    """

    kernel: Kernel | None
    ridge: float
    about: dict[str, Any] = field(default_factory=dict)
    score: float = -math.inf
    solution: RidgeSolution | None = None

    def fitted(self) -> RidgeSolution:
        """Return the solution of a setting that was evaluated."""
        if self.solution is None:
            raise ValueError("the setting was not evaluated, so it has no solution.")
        return self.solution

    def kernel_used(self) -> Kernel:
        """Return the kernel of a setting that has one."""
        if self.kernel is None:
            raise ValueError("the setting came from a given matrix, so it has no kernel.")
        return self.kernel


def evaluate_matrix(
    K: Tensor,
    ridges: Sequence[float],
    y: Tensor,
    *,
    kernel: Kernel | None = None,
    criterion: str = "squared_error",
    weights: Tensor | None = None,
    about: dict[str, Any] | None = None,
    intercept: bool = False,
) -> list[Candidate]:
    """Fit with one kernel matrix and each ridge, and score each by leave-one-out.

    A score that is not a number counts as the worst. `intercept` says that K is double-centered.
    """
    score = CRITERIA[check_choice("criterion", criterion, CRITERIA)]
    mass = torch.ones(len(y), dtype=y.dtype, device=y.device) if weights is None else weights
    candidates = []
    for solution in ridge_path(K, y, ridges, weights, intercept=intercept):
        value = score(solution, y, mass)
        value = value if math.isfinite(value) else -math.inf
        candidates.append(Candidate(kernel, solution.ridge, about or {}, value, solution))
    return candidates


def evaluate(
    kernel: Kernel,
    ridges: Sequence[float],
    X: Tensor,
    y: Tensor,
    *,
    gram: Callable[[Tensor], Tensor] | None = None,
    **options: Any,
) -> list[Candidate]:
    """Fit one kernel with each ridge and score each by leave-one-out; one kernel matrix serves all.

    `gram` turns the kernel matrix into the one that is regressed with, where that is another (centered, squared); the
    other options are those of `evaluate_matrix`.
    """
    K = kernel.matrix(X)
    return evaluate_matrix(K if gram is None else gram(K), ridges, y, kernel=kernel, **options)


def best(candidates: Iterable[Candidate]) -> Candidate:
    """Return the setting with the largest score. The first of equals is returned, so list the simplest first."""
    candidates = list(candidates)
    if not candidates:
        raise ValueError("there are no settings to choose from: at least one kernel and one ridge are needed.")
    return max(candidates, key=lambda candidate: candidate.score)


def select(
    kernels: Sequence[Kernel],
    ridges: Sequence[float],
    X: Tensor,
    y: Tensor,
    *,
    criterion: str = "squared_error",
    weights: Tensor | None = None,
    n_search: int = 2000,
    n_finalists: int = 3,
    gram: Callable[[Tensor], Tensor] | None = None,
    intercept: bool = False,
    random_state: Any = None,
) -> Candidate:
    """Return the best of all kernels and ridges by leave-one-out, at a bounded cost.

    With more than `n_search` rows the settings are first compared on that many rows drawn at random; the
    `n_finalists` best (kernel, ridge) pairs are then fitted and compared on all rows. A ridge means the same on both:
    it is the noise variance relative to the output scale, not a number that grows with n.

    Parameters
    ----------
    kernels : sequence of Kernel
    ridges : sequence of float
    X : tensor of shape (n, d)
    y : tensor of shape (n,) or (n, c)
    criterion : {"squared_error", "log_density", "accuracy"}, default="squared_error"
    weights : tensor of shape (n,), optional
    n_search : int, default=2000
    n_finalists : int, default=3
        0 takes the winner of the search as it is, without a fit on all rows.
    gram : callable, optional
        Turns the kernel matrix into the one that is regressed with.
    intercept : bool, default=False
        Say that `gram` centers.
    random_state : int, RandomState instance or None, default=None
        Draws the rows of the search.

    Notes
    -----
    O(len(kernels) n_search^3 + n_finalists n^3).
    """
    n_search = check_count("n_search", n_search, at_least=2)
    n_finalists = check_count("n_finalists", n_finalists, at_least=0)
    scored = partial(evaluate, criterion=criterion, gram=gram, intercept=intercept)
    if len(X) <= n_search:
        return best(c for kernel in kernels for c in scored(kernel, ridges, X, y, weights=weights))
    drawn = np.sort(check_random_state(random_state).choice(len(X), n_search, replace=False))
    rows = torch.from_numpy(drawn).to(X.device)
    part = None if weights is None else weights[rows]
    tried = [(kernel, c) for kernel in kernels for c in scored(kernel, ridges, X[rows], y[rows], weights=part)]
    if n_finalists == 0:
        return best(c for _, c in tried)
    finalists = sorted(tried, key=lambda pair: -pair[1].score)[:n_finalists]
    return best(c for kernel, f in finalists for c in scored(kernel, [f.ridge], X, y, weights=weights, about=f.about))


def climb(
    cost: Callable[[tuple[int, int]], float],
    is_allowed: Callable[[tuple[int, int]], bool],
    *,
    smallest_gain: float,
    fine: bool,
) -> tuple[tuple[int, int], float]:
    """Return the place of a two-dimensional grid where no neighbor is cheaper, and its cost, begun at (0, 0).

    Neighbors are two places away along an axis; with `fine` also along the diagonal on which bandwidth and ridge make
    up for each other, and then one place away. The direction that was right last is tried first, and taken as soon as
    it pays: some ten places are visited where a grid would have a hundred.

    Parameters
    ----------
    cost : callable
        Of a place (i, j): steps of the bandwidth and of the ridge.
    is_allowed : callable
        Whether a place may be visited.
    smallest_gain : float
        What a step must gain.
    fine : bool
        Whether to end with smaller steps.
    """
    seen = {(0, 0): cost((0, 0))}
    here, last = (0, 0), (0, 2)
    for stride in (2, 1) if fine else (2,):
        for _ in range(MOST_STEPS):
            # Of a smooth kernel, a wider one with less noise fits as well: what no step along one axis gains, both may.
            both = [(stride, -stride), (-stride, stride)] if fine else []
            directions = [(0, stride), (0, -stride), (stride, 0), (-stride, 0), *both]
            directions.sort(key=lambda direction: direction != last)
            better = False
            for direction in directions:
                place = (here[0] + direction[0], here[1] + direction[1])
                if place in seen or not is_allowed(place):
                    continue
                seen[place] = cost(place)
                if seen[place] < seen[here] - smallest_gain:
                    here, last, better = place, direction, True
                    break
            if not better:
                break
    return here, seen[here]


def squared_stacking_weights(predictions: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Return the weights of an average of predictions whose squared error at the rows left out is smallest.

    Minimizes sum_i w_i |y_i - sum_c p_c predictions_ci|^2 over p >= 0 with sum 1 (Breiman's stacked regressions).

    Parameters
    ----------
    predictions : ndarray of shape (k, n, c)
        Of each row by each setting fitted without it.
    y : ndarray of shape (n, c)
    weights : ndarray of shape (n,), optional

    Returns
    -------
    ndarray of shape (k,)
    """
    root = np.sqrt(np.ones(len(y)) if weights is None else weights)[:, None]
    # With sum 1 the error of the average is the average of the errors: what is left is min |E p| on the simplex, which
    # is the direction of the non-negative solution of E p = 0, 1'p = 1 in least squares.
    errors = np.stack([(root * (y - p)).ravel() for p in predictions], axis=1)
    scale = np.sqrt(np.square(errors).sum(axis=0).mean())
    if not scale > 0:
        return np.full(len(predictions), 1.0 / len(predictions))
    system = np.vstack([errors / scale, np.ones(len(predictions))])
    shares, _ = nnls(system, np.append(np.zeros(len(errors)), 1.0))
    return shares / shares.sum()


def stacking_weights(log_densities: np.ndarray, weights: np.ndarray | None = None, n_steps: int = 500) -> np.ndarray:
    """Return the weights of an average of predictive densities under which the rows left out are likeliest.

    Maximizes sum_i w_i log sum_c p_c exp(log_densities_ic) over p >= 0 with sum 1, a concave problem, by
    expectation-maximization: no step size, and every step goes uphill.

    Parameters
    ----------
    log_densities : ndarray of shape (n, k)
        Of each row under each setting fitted without it.
    weights : ndarray of shape (n,), optional
    n_steps : int, default=500

    Returns
    -------
    ndarray of shape (k,)
    """
    mass = np.ones(len(log_densities)) if weights is None else weights
    densities = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    shares = np.full(densities.shape[1], 1.0 / densities.shape[1])
    for _ in range(n_steps):
        blamed = densities * shares
        updated = (mass / mass.sum()) @ (blamed / blamed.sum(axis=1, keepdims=True))
        if np.abs(updated - shares).max() < 1e-6:
            break
        shares = updated
    return shares / shares.sum()
