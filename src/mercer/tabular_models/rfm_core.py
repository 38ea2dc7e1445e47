"""Recursive feature machines: bandwidth and ridge by leave-one-out errors, exact or on landmarks."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mercer.exceptions import ConvergenceWarning
from mercer.kernels import Kernel
from mercer.linalg import RidgeSolution, ridge_path
from mercer.selection import Candidate, best, squared_stacking_weights
from mercer.tabular_models.component import Component
from mercer.tabular_models.landmark_gradients import many_landmarks
from mercer.tabular_models.landmark_table import Drawn, drawn_landmarks, pool_of, through_landmarks
from mercer.tabular_models.search import climb
from mercer.tabular_models.table import Observations, Table

# Bandwidth and ridge are chosen on at most this many rows, where a whole path of ridges costs one decomposition.
PATH_ROWS = 800
RIDGES = tuple(float(10.0**power) for power in np.arange(-7.0, 1.6, 0.5))
NEIGHBOURS = (1.0, 0.3, 3.0)
# On more landmarks than this sums over the rows are not formed, and coefficients come by conjugate gradients; the ridge
# and the errors left out are then those of fewer.
MOST_SUMMED, SUMMED_OF_MANY = 4000, 2000
# Machines with a smaller share of the average are left out of it.
SMALLEST_SHARE = 0.02


class RidgeFit:
    """The `Fit` of an RFM: bandwidth and ridge of the smallest squared leave-one-out error.

    With more than `PATH_ROWS` rows the two are chosen on that many of them; the fit is on all, with the ridge and its
    neighbours, since more rows may bear another.

    Parameters
    ----------
    ridges : sequence of float
    tune_bandwidth : bool
        Whether to climb over multiples of the kernel's bandwidth.
    random_state : int
        Draws the rows on which the choice is made: the same for every kernel.
    """

    def __init__(self, ridges: Sequence[float], tune_bandwidth: bool, random_state: int) -> None:
        self.ridges, self.tune_bandwidth, self.random_state = ridges, tune_bandwidth, random_state

    def __call__(self, kernel: Kernel, table: Table, warp: Any) -> Candidate:
        """Return the kernel with its bandwidth and ridge at their best, fitted and scored on the table."""
        few = table.sample(PATH_ROWS, np.random.RandomState(self.random_state))
        if self.tune_bandwidth:
            chosen = climb(lambda factor: at(kernel.rescaled(factor), few, warp, self.ridges))
        elif few is table or len(self.ridges) > 1:
            chosen = at(kernel, few, warp, self.ridges)
        else:
            return at(kernel, table, warp, self.ridges)
        if few is table:
            return chosen
        near = [chosen.ridge * factor for factor in NEIGHBOURS] if len(self.ridges) > 1 else self.ridges
        return at(chosen.kernel_used(), table, warp, near)


def at(kernel: Kernel, table: Table, warp: Any, ridges: Sequence[float]) -> Candidate:
    """Return the best of the ridges for one kernel, fitted and scored on all rows of the table."""
    K = kernel.matrix(table.warped(warp))
    return best(judged(kernel, solution, table) for solution in ridge_path(K, table.y, ridges, table.weights))


def judged(kernel: Kernel, solution: RidgeSolution, table: Table) -> Candidate:
    """Return a solution as a candidate: its score is minus the mean squared leave-one-out error of the observations."""
    candidate = Candidate(kernel, solution.ridge, solution=solution)
    y, _, weights = table.observations
    row_scores = -np.mean((y - left_out(candidate, table)) ** 2, axis=1)
    score = float(weights @ row_scores / weights.sum())
    score = score if math.isfinite(score) else -math.inf
    return replace(candidate, about={"row_scores": row_scores}, score=score)


class FittedRFM(NamedTuple):
    """A component on all rows, which rows its centres are, and the rows at which errors were left out."""

    component: Component
    basis_index: np.ndarray
    candidate: Candidate
    rows: Table

    def left_out(self) -> np.ndarray:
        """Return the predictions of the observations left out, centred as their targets are."""
        return left_out(self.candidate, self.rows)


def left_out(candidate: Candidate, table: Table) -> np.ndarray:
    """Return the leave-one-out prediction of every observation of a table, centred as its target is."""
    residuals = candidate.fitted().residuals
    return (table.y.to(residuals) - residuals).cpu().numpy()[table.observations.group]


def shares_of(predictions: Sequence[np.ndarray], observations: Observations) -> np.ndarray:
    """Return the shares of machines in an average, from their predictions of rows left out; small ones are none."""
    y, _, weights = observations
    shares = squared_stacking_weights(np.stack(predictions), y, weights)
    shares = np.where(shares < SMALLEST_SHARE, 0.0, shares)
    return shares / shares.sum()


def exact_rfm(candidate: Candidate, table: Table) -> FittedRFM:
    """Return the component of a candidate that was fitted on all rows of the table."""
    warp, solution = candidate.about["recipe"].warp, candidate.fitted()
    scales = ((table.y * solution.alpha).sum(dim=0) / len(table)).clamp(min=0.0).cpu().numpy()
    shared = solution.ridge * table.shared_noise(solution.ridge * scales)
    component = Component(
        candidate.kernel_used(),
        table.columns(warp),
        table.warped(warp).cpu().numpy(),
        solution.alpha.cpu().numpy(),
        solution.ridge,
        1.0,
        scales,
        shared,
    )
    return FittedRFM(component, np.arange(len(table)), candidate, table)


def landmark_rfm(
    candidate: Candidate,
    table: Table,
    ridges: Sequence[float],
    n_landmarks: int,
    method: str,
    random_state: int,
    working_memory: float,
) -> FittedRFM:
    """Return the component of a candidate on m landmarks; the ridge by leave-one-out.

    Up to `MOST_SUMMED` landmarks one pass over the rows serves all ridges. For more, the ridge and the errors left out
    are those of `SUMMED_OF_MANY`, and coefficients on all come by conjugate gradients. Where these do not converge the
    smaller machine is kept.
    """
    kernel, warp = candidate.kernel_used(), candidate.about["recipe"].warp
    summed = n_landmarks if n_landmarks <= MOST_SUMMED else SUMMED_OF_MANY
    seen = through_landmarks(kernel, table, warp, summed, method, random_state, working_memory)
    final = best(judged(kernel, solution, seen.rows) for solution in seen.solutions(ridges))
    final.about.update(recipe=candidate.about["recipe"], iterate=candidate.about.get("iterate", 0))
    drawn, alpha = Drawn(seen.landmarks, seen.row_index), final.fitted().alpha
    if n_landmarks > summed:
        random = np.random.RandomState(random_state)
        pool = pool_of(table, n_landmarks, random)
        many = drawn_landmarks(kernel, pool, warp, n_landmarks, method, random, working_memory)
        solution = many_landmarks(
            kernel,
            table.X,
            many.landmarks,
            table.y,
            final.ridge,
            table.weights,
            warp=table.columns(warp).transform,
            working_memory=working_memory,
        )
        if solution.converged:
            drawn, alpha = many, solution.x
        else:
            warnings.warn(
                f"n_landmarks={n_landmarks} are too many for {kernel!r} at a ridge of {final.ridge:.1e}: conjugate "
                f"gradients did not converge in {solution.steps} steps, and {summed} landmarks are used. A larger "
                "ridge or a rougher kernel ('laplace', 'matern32') avoids this.",
                ConvergenceWarning,
                stacklevel=2,
            )
    component = Component(
        kernel,
        table.columns(warp),
        drawn.landmarks.cpu().numpy(),
        alpha.cpu().numpy(),
        final.ridge,
        1.0,
        np.ones(table.y.shape[1]),
    )
    return FittedRFM(component, drawn.row_index, final, seen.rows)
