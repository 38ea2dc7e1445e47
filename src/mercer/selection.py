"""Comparison of settings (kernel, bandwidth, metric, ridge) by closed-form leave-one-out, without a validation set."""

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

# The most steps that `climb` takes at one step size.
MOST_STEPS = 10
# `stacking_weights` stops once no weight changes by as much as this in a step.
STACKING_TOLERANCE = 1e-6


def squared_error_score(solution: RidgeSolution, y: Tensor, weights: Tensor) -> float:
    """Return minus the weighted mean, over rows and outputs, of the squared leave-one-out errors."""
    squares = solution.residuals.reshape(len(y), -1).square().mean(dim=1)
    return -float(weights @ squares / weights.sum())


def log_density_score(solution: RidgeSolution, y: Tensor, weights: Tensor) -> float:
    """Return the weighted mean, over rows and outputs, of the log density of y_i under the fit without row i.

    The fit is a Gaussian process with the prior y ~ N(0, s A), A = K + ridge W^-1, so that y_i is predicted with the
    variance s / (A^-1)_ii. Each output has an output scale s of its own, the one that maximizes the score: the mean of
    the squared errors divided by the variances 1 / (A^-1)_ii.
    """
    variances = solution.variances[:, None]
    scaled = solution.residuals.reshape(len(y), -1).square() / variances
    s = (weights @ scaled / weights.sum()).clamp(min=torch.finfo(y.dtype).tiny)
    log_densities = -0.5 * (torch.log(2 * math.pi * s * variances) + scaled / s)
    return float(weights @ log_densities.mean(dim=1) / weights.sum())


def accuracy_score(solution: RidgeSolution, y: Tensor, weights: Tensor) -> float:
    """Return the weighted share of rows whose class is predicted correctly by the fit without the row.

    y has one column for each class, with the largest entry at the row's class, and the predicted class is the largest
    output. If y has only one column, the class is its sign.
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
    """One setting: a kernel with numbers for all its parameters, and a ridge.

    Attributes
    ----------
    kernel : Kernel or None
        None if the kernel matrix was given.
    ridge : float
    about : dict
        What the caller wants to know about the setting later.
    score : float
        The leave-one-out score, larger is better; -inf before the setting is evaluated.
    solution : RidgeSolution or None
        The fit that the score is from; None before the setting is evaluated.
    """

    kernel: Kernel | None
    ridge: float
    about: dict[str, Any] = field(default_factory=dict)
    score: float = -math.inf
    solution: RidgeSolution | None = None

    def fitted(self) -> RidgeSolution:
        """Return the solution; raise if the setting was not evaluated."""
        if self.solution is None:
            raise ValueError("the setting was not evaluated, so it has no solution.")
        return self.solution

    def kernel_used(self) -> Kernel:
        """Return the kernel; raise if the kernel matrix was given."""
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
    """Fit with one kernel matrix and each ridge, and score each fit by leave-one-out.

    A score that is not finite counts as the worst. `intercept` says whether K is double-centered. The cost is that of
    `mercer.linalg.ridge_path`, at most O(n^3) for each ridge.
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
    """Fit one kernel with each ridge and score each fit by leave-one-out, with one kernel matrix for all ridges.

    `gram` makes the matrix of the regression from the kernel matrix, if the two differ (for example, if it is centered
    or squared). The other options are those of `evaluate_matrix`.
    """
    K = kernel.matrix(X)
    return evaluate_matrix(K if gram is None else gram(K), ridges, y, kernel=kernel, **options)


def best(candidates: Iterable[Candidate]) -> Candidate:
    """Return the setting with the largest score. Of equal scores the first is returned, so list the simplest first."""
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
    """Return the best of all pairs of a kernel and a ridge by leave-one-out, at a bounded cost.

    If there are more than `n_search` rows, the pairs are first compared on that many rows drawn at random. The
    `n_finalists` best pairs are then fitted and compared on all rows. A ridge means the same in both comparisons, since
    it is the noise variance relative to the output scale, which does not grow with n.

    Parameters
    ----------
    kernels : sequence of Kernel
    ridges : sequence of float
    X : tensor of shape (n, d)
    y : tensor of shape (n,) or (n, c)
    criterion : {"squared_error", "log_density", "accuracy"}, default="squared_error"
    weights : tensor of shape (n,), optional
        The weights of the rows.
    n_search : int, default=2000
        The number of rows of the first comparison.
    n_finalists : int, default=3
        The number of pairs that are compared on all rows. With 0, the winner of the first comparison is returned
        without a fit on all rows.
    gram : callable, optional
        Makes the matrix of the regression from the kernel matrix.
    intercept : bool, default=False
        Whether `gram` double-centers the matrix.
    random_state : int, RandomState instance or None, default=None
        Draws the rows of the first comparison.

    Notes
    -----
    O(len(kernels) n_search^3 + n_finalists n^3) time.
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
    """Return a place of a two-dimensional grid that has no cheaper neighbor, and its cost, by a local search.

    The search starts at (0, 0). Neighbors are two places away along an axis. With `fine`, they may also lie on the
    diagonal along which bandwidth and ridge compensate each other, and a second search with neighbors one place away
    follows. The direction of the last step is tried first, and the first neighbor that is better is taken. Some ten
    places are visited in this way, where the whole grid would have a hundred.

    Parameters
    ----------
    cost : callable
        (i, j) -> the cost of a place, which is i steps of the bandwidth and j steps of the ridge away from the start.
    is_allowed : callable
        (i, j) -> whether the place may be visited.
    smallest_gain : float
        By how much a step must lower the cost.
    fine : bool
        Whether to search diagonally too, and to end with smaller steps.
    """
    seen = {(0, 0): cost((0, 0))}
    here, last = (0, 0), (0, 2)
    for stride in (2, 1) if fine else (2,):
        for _ in range(MOST_STEPS):
            # A wider smooth kernel with a smaller ridge may fit as well, so that a step along both axes can be better
            # where no step along one axis is.
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
    """Return the weights of an average of predictions for which the squared error at rows left out is smallest.

    Minimizes sum_i w_i |y_i - sum_c p_c predictions_ci|^2 over p >= 0 with sum 1 (Breiman's stacked regressions).

    Parameters
    ----------
    predictions : ndarray of shape (k, n, c)
        The predictions of each of k settings for each row, from a fit without the row.
    y : ndarray of shape (n, c)
        The targets.
    weights : ndarray of shape (n,), optional
        w, the weights of the rows; equal by default.

    Returns
    -------
    ndarray of shape (k,)
        p.
    """
    root = np.sqrt(np.ones(len(y)) if weights is None else weights)[:, None]
    # Since p has sum 1, the error of the average is the average of the errors, and the problem is to minimize |E p| on
    # the simplex. The solution is proportional to that of E p = 0, 1'p = 1 by non-negative least squares.
    errors = np.stack([(root * (y - p)).ravel() for p in predictions], axis=1)
    scale = np.sqrt(np.square(errors).sum(axis=0).mean())
    if not scale > 0:
        return np.full(len(predictions), 1.0 / len(predictions))
    system = np.vstack([errors / scale, np.ones(len(predictions))])
    shares, _ = nnls(system, np.append(np.zeros(len(errors)), 1.0))
    return shares / shares.sum()


def stacking_weights(log_densities: np.ndarray, weights: np.ndarray | None = None, n_steps: int = 500) -> np.ndarray:
    """Return the weights of an average of predictive densities for which the rows left out are most probable.

    Maximizes sum_i w_i log sum_c p_c exp(log_densities_ic) over p >= 0 with sum 1. This is a concave problem. It is
    solved by expectation-maximization, which has no step size and increases the objective in every step.

    Parameters
    ----------
    log_densities : ndarray of shape (n, k)
        The log density of each row under each of k settings, from a fit without the row.
    weights : ndarray of shape (n,), optional
        w, the weights of the rows; equal by default.
    n_steps : int, default=500
        The most steps.

    Returns
    -------
    ndarray of shape (k,)
        p.
    """
    mass = np.ones(len(log_densities)) if weights is None else weights
    densities = np.exp(log_densities - log_densities.max(axis=1, keepdims=True))
    shares = np.full(densities.shape[1], 1.0 / densities.shape[1])
    for _ in range(n_steps):
        joint = densities * shares
        updated = (mass / mass.sum()) @ (joint / joint.sum(axis=1, keepdims=True))
        if np.abs(updated - shares).max() < STACKING_TOLERANCE:
            break
        shares = updated
    return shares / shares.sum()
