"""The choice of a warp of a target before the search, by the density of left-out rows on few rows with one kernel."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from mercer.exceptions import invalid_parameter
from mercer.kernels import Matern32
from mercer.linalg import ridge_path, threads_for
from mercer.tabular_models.column_warp import ColumnWarp
from mercer.tabular_models.fitters import is_clearly_better
from mercer.tabular_models.predictive import Predictive
from mercer.tabular_models.spread import fit_spread
from mercer.tabular_models.target_warp import TargetWarp, log_warp, moments_of, power_warps

RIDGES = (1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0)
# A warp must raise the log density of left-out rows by more than this many standard errors.
CLEARLY = 2.0
# The smallest number of rows for which "auto" compares warps, and the largest number of rows that are used.
FEWEST_ROWS, MOST_ROWS = 40, 400


class Trial(NamedTuple):
    """A warp, with the log densities and the squared errors of left-out rows, both in units of the target."""

    warp: TargetWarp
    densities: np.ndarray
    squares: np.ndarray


def warps_tried(name: str, y: np.ndarray) -> list[TargetWarp]:
    """Return the warps with this name that suit a target; for "auto", those with any name."""
    logarithm = log_warp(y)
    found = [logarithm] if name in ("auto", "log") and logarithm is not None else []
    return found + (power_warps(y) if name in ("auto", "yeo-johnson") else [])


def choose_warp(Z: np.ndarray, y: np.ndarray, weights: np.ndarray, warps: Sequence[TargetWarp]) -> TargetWarp:
    """Return the warp with the largest density of left-out rows, or no warp unless it is clearly better.

    Only warps that do not raise the squared error are considered. A Gaussian process with one kernel is fitted to each
    warped target, and its leave-one-out predictions have a closed form. Their spread is learned in the same way as that
    of the final model, so that heavy tails alone do not lead to a warp.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Warped and standardized columns of a few hundred rows.
    y : ndarray of shape (n,)
    weights : ndarray of shape (n,)
    warps : sequence of TargetWarp

    Notes
    -----
    O(n^3): one eigendecomposition is enough for all warps and ridges.
    """
    if not warps or len(Z) < FEWEST_ROWS or not np.ptp(Z, axis=0).any():
        return TargetWarp()
    plain, *trials = judged(Z, y, weights, [TargetWarp(), *warps])
    as_near = [trial for trial in trials if weights @ trial.squares <= weights @ plain.squares]
    best = max(as_near, key=lambda trial: float(weights @ trial.densities), default=plain)
    return best.warp if is_clearly_better(best.densities, plain.densities, weights, errors=CLEARLY) else plain.warp


def chosen_warps(
    name: str, X: np.ndarray, y: np.ndarray, weights: np.ndarray, random: np.random.RandomState
) -> list[TargetWarp]:
    """Return a warp for each of the targets y of shape (n, c): the one with the given name, or the best for "auto".

    For "yeo-johnson", the exponent maximizes the density of left-out rows. At most `MOST_ROWS` rows are used.
    """
    if name == "none":
        return [TargetWarp()] * y.shape[1]
    used = np.flatnonzero(weights > 0)
    some = random.permutation(used)[:MOST_ROWS]
    Z = ColumnWarp("rank").fit_transform(X[some].astype(np.float64, copy=False))
    found = []
    for target in y.T:
        warps = warps_tried(name, target[used])
        if name == "log" and not warps:
            raise invalid_parameter("target_warp", name, "'auto', 'none' or 'yeo-johnson' where targets are below 0")
        if name == "auto":
            found.append(choose_warp(Z, target[some], weights[some], warps))
        elif len(warps) == 1:
            found.append(warps[0])
        else:
            trials = judged(Z, target[some], weights[some], warps) if warps and np.ptp(Z, axis=0).any() else []
            best = max(trials, key=lambda trial: float(weights[some] @ trial.densities), default=None)
            found.append(TargetWarp() if best is None else best.warp)
    return found


def judged(Z: np.ndarray, y: np.ndarray, weights: np.ndarray, warps: Sequence[TargetWarp]) -> list[Trial]:
    """Return the densities and squared errors of left-out rows under each warp, at the ridge with the best density."""
    bent = np.stack([warp.forward(y) for warp in warps], axis=1)
    centered = torch.from_numpy(bent - np.average(bent, axis=0, weights=weights))
    kernel = Matern32("median").resolved(Z, 0)
    best: list[tuple[float, np.ndarray, np.ndarray]] = [(-np.inf, y, y)] * len(warps)
    with threads_for(len(Z)):
        for solution in ridge_path(torch.from_numpy(kernel.matrix(Z)), centered, RIDGES):
            errors, variances = solution.residuals.numpy(), solution.variances.numpy()
            for j in range(len(warps)):
                scale = float(weights @ (errors[:, j] ** 2 / variances) / weights.sum())
                score = -0.5 * float(weights @ np.log(np.maximum(scale * variances, np.finfo(float).tiny)))
                if score > best[j][0]:
                    best[j] = score, bent[:, j] - errors[:, j], np.sqrt(scale * variances)
    trials = []
    for j, (warp, (_, mean, deviation)) in enumerate(zip(warps, best, strict=True)):
        deviation = np.maximum(deviation, np.finfo(float).tiny)
        raw = Predictive(np.ones(1), mean[None, :, None], deviation[None, :, None], np.array([np.inf]))
        predictive = fit_spread(raw, bent[:, j : j + 1], weights, 0).corrected(raw)
        densities = predictive.log_densities(bent[:, j : j + 1])[:, 0] + warp.log_slope(y)
        trials.append(Trial(warp, densities, (y - moments_of(predictive, [warp])[0][:, 0]) ** 2))
    return trials
