"""Noise that depends on x: the size of the errors at a row, learned from the errors of left-out rows."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from mercer.blocks import WORKING_MEMORY, as_tensor
from mercer.kernels import Gaussian, Kernel
from mercer.landmarks.features import landmark_features
from mercer.linalg import ridge_leave_one_out, threads_for
from mercer.tabular_models.column_warp import ColumnWarp
from mercer.tabular_models.fitters import is_clearly_better
from mercer.tabular_models.machine import Machine
from mercer.tabular_models.predictive import Predictive
from mercer.tabular_models.spread import Spread, fit_spread

# The largest and the smallest number of left-out rows whose errors are smoothed.
MOST_ROWS, FEWEST_ROWS = 400, 40
# The variance of |z| is about .6 of its squared mean. With these ridges the level varies by .8, .4 and .2.
RIDGES = (1.0, 4.0, 16.0)
# Levels are clipped to lie between these multiples of the common level.
LEVELS = (0.2, 5.0)
# Noise that depends on x must raise the log density of left-out rows by more than this many standard errors.
CLEARLY = 2.0


class NoiseLevel(NamedTuple):
    """The noise level relative to the common one: g(x) = 1 + sum_i alpha_i k(u_i, u(x)), clipped to `LEVELS`.

    Attributes
    ----------
    kernel : Kernel
    columns : ColumnWarp or None
        The warp of the columns that gives u(x); if None, u(x) is the predicted mean.
    inputs : ndarray of shape (m, d)
        The values u_i at the left-out rows from which the level was learned.
    alpha : ndarray of shape (m,)
    """

    kernel: Kernel
    columns: ColumnWarp | None
    inputs: np.ndarray
    alpha: np.ndarray

    def at(self, X: np.ndarray, mean: np.ndarray, working_memory: float = WORKING_MEMORY) -> np.ndarray:
        """Return the level at the rows of X with given predicted means, of shape (n,)."""
        u = mean[:, None] if self.columns is None else self.columns.transform(X.astype(np.float64, copy=False))
        Z, alpha = (as_tensor(part, dtype=torch.float64) for part in (self.inputs, self.alpha[:, None]))
        varying = landmark_features(self.kernel, u, Z, alpha, working_memory=working_memory)
        return kept_within(1.0 + np.asarray(varying)[:, 0])


class Found(NamedTuple):
    """A noise level, the spread that belongs to it, and the mean log density of left-out rows under both."""

    level: NoiseLevel
    spread: Spread
    score: float


def kept_within(levels: np.ndarray) -> np.ndarray:
    """Return the levels, clipped to the allowed range."""
    return np.clip(levels, *LEVELS)


def find_noise_level(
    leader: Machine, X: np.ndarray, raw: Predictive, y: np.ndarray, weights: np.ndarray, spread: Spread, n_chosen: int
) -> Found | None:
    """Return the noise level with the largest likelihood of left-out rows; None if a common level is not clearly worse.

    The absolute errors |z_i|, in units of the corrected standard deviations, are smoothed over x by kernel ridge
    regression. Its leave-one-out predictions are known in closed form, so the level at a row is judged without the
    error of this row. The level is learned from |z| because log z^2 contains 2.2 times less information on a variance,
    and because a few rows in heavy tails would dominate z^2.

    Parameters
    ----------
    leader : Machine
        The machine with the largest share, whose kernel is one of those tried.
    X : ndarray of shape (n, d)
        The left-out rows.
    raw : Predictive
        The uncorrected distribution of one target at these rows.
    y : ndarray of shape (n, 1)
    weights : ndarray of shape (n,)
    spread : Spread
        The spread that was found with a common level.
    n_chosen : int
        As for `fit_spread`.

    Notes
    -----
    O(m^3) for m = min(n, MOST_ROWS) rows, nine times.
    """
    if len(X) < FEWEST_ROWS:
        return None
    some = np.unique(np.linspace(0, len(X) - 1, min(len(X), MOST_ROWS)).round().astype(int))
    X, raw, y, weights = X[some], raw.of_rows(some), y[some], weights[some]
    common = spread.corrected(raw)
    sizes = np.abs(y - common.mean())[:, 0] / np.sqrt(common.variance()[:, 0])
    relative = sizes / np.average(sizes, weights=weights) - 1.0
    if not np.isfinite(relative).all():
        return None
    best: tuple[float, NoiseLevel, np.ndarray] | None = None
    with threads_for(len(X)):
        for kernel, columns, inputs in kernels_tried(leader, X, raw.mean()[:, 0]):
            K = torch.from_numpy(kernel.matrix(inputs))
            for ridge in RIDGES:
                # A Cholesky factor for each of three ridges takes a third of the time of one eigendecomposition.
                solution = ridge_leave_one_out(K, torch.from_numpy(relative)[:, None], ridge)
                left_out = kept_within(1.0 + relative - solution.residuals[:, 0].numpy())
                # The log likelihood if |z| / level is exponential, for which no tails have to be fitted first.
                score = -float(weights @ (np.log(left_out) + (1.0 + relative) / left_out))
                if best is None or score > best[0]:
                    best = score, NoiseLevel(kernel, columns, inputs, solution.alpha[:, 0].numpy()), left_out
    if best is None:
        return None
    scaled = raw._replace(deviations=raw.deviations * best[2][:, None])
    own = fit_spread(scaled, y, weights, n_chosen)
    densities = own.corrected(scaled).log_densities(y)[:, 0]
    if not is_clearly_better(densities, common.log_densities(y)[:, 0], weights, errors=CLEARLY):
        return None
    return Found(best[1], own, float(np.average(densities, weights=weights)))


def kernels_tried(
    leader: Machine, X: np.ndarray, mean: np.ndarray
) -> Iterator[tuple[Kernel, ColumnWarp | None, np.ndarray]]:
    """Yield the kernels to compare, each with the warp of its inputs and the inputs u.

    The inputs are the predicted mean, the columns under the identity metric, and the columns under the metric of the
    leader. Errors contain little information on the level, so it must be smooth: bandwidths are twice the usual ones.
    """
    if np.ptp(mean) > 0:
        yield Gaussian("median").resolved(mean[:, None], 0).rescaled(2.0), None, mean[:, None]
    warped = leader.columns.transform(X.astype(np.float64, copy=False))
    if not np.ptp(warped, axis=0).any():
        return
    yield Gaussian("median").resolved(warped, 0).rescaled(2.0), leader.columns, warped
    if leader.kernel.common_metric() is not None:
        yield leader.kernel.rescaled(2.0), leader.columns, warped
