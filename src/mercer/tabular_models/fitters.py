"""How a kernel machine is judged: by errors of left-out rows, by their likelihood, or by the log loss of classes.

All of them answer the same three questions, so that one search works for all. How good are a bandwidth and a ridge on
given rows (`cost`)? How good are predictions of left-out rows (`row_scores`)? With which shares are several machines
averaged (`shares`)?
"""

import math
from typing import NamedTuple, Protocol

import numpy as np
from torch import Tensor

from mercer.linalg import RidgeSolution, ridge_leave_one_out
from mercer.selection import squared_stacking_weights, stacking_weights
from mercer.tabular_models.calibration import fit_calibration, fit_softmax
from mercer.tabular_models.evidence import matrix_evidence
from mercer.tabular_models.predictive import likeliest_log_densities
from mercer.tabular_models.table import Table

# The smallest ridge that is tried, about the square root of the precision. Below it, rounding errors would dominate.
SMALLEST_RIDGE = 1e-8
# Machines with a smaller share are removed from the average.
SMALLEST_SHARE = 0.05


class LeftOut(NamedTuple):
    """Predictions of left-out rows.

    Attributes
    ----------
    y : ndarray of shape (n, c)
        The targets, centered.
    mean : ndarray of shape (n, c)
    unit_variance : ndarray of shape (n,)
        The variance of a target for an output scale of 1, including its noise.
    weights : ndarray of shape (n,)
    trend : ndarray of shape (n, c)
        The part of `mean` that comes from the trend; 0 if there is none.
    """

    y: np.ndarray
    mean: np.ndarray
    unit_variance: np.ndarray
    weights: np.ndarray
    trend: np.ndarray

    @classmethod
    def from_solution(cls, solution: RidgeSolution, table: Table) -> "LeftOut":
        """Return the leave-one-out predictions of a closed-form fit on a table."""
        trend, residuals = table.trend.cpu().numpy(), solution.residuals.cpu().numpy()
        y = table.y.cpu().numpy() + trend
        return cls(y, y - residuals, solution.variances.cpu().numpy(), table.mass.cpu().numpy(), trend)

    @classmethod
    def joined(cls, parts: list["LeftOut"]) -> "LeftOut":
        """Return several parts as one, in their order."""
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def rows(self, index: np.ndarray) -> "LeftOut":
        """Return the predictions of some of the rows."""
        return LeftOut(*(column[index] for column in self))

    def error_scores(self) -> np.ndarray:
        """Return minus the squared error of each row, averaged over the outputs, of shape (n,)."""
        return -((self.y - self.mean) ** 2).mean(axis=1)

    def density_scales(self) -> np.ndarray:
        """Return the output scales that maximize the likelihood of the targets, of shape (c,)."""
        squares = (self.y - self.mean) ** 2 / self.unit_variance[:, None]
        return np.maximum(self.weights @ squares / self.weights.sum(), np.finfo(np.float64).tiny)

    def log_densities(self) -> np.ndarray:
        """Return the log density of each row for these scales, averaged over the outputs, of shape (n,)."""
        variance = self.density_scales() * self.unit_variance[:, None]
        squares = (self.y - self.mean) ** 2 / variance
        return (-0.5 * (np.log(2 * math.pi * variance) + squares)).mean(axis=1)

    def log_densities_with_tails(self) -> np.ndarray:
        """Return the log densities for the scales and the tails that maximize the likelihood of the rows."""
        relative = (self.y - self.mean) / np.sqrt(self.unit_variance)[:, None]
        densities = [likeliest_log_densities(column, self.weights) for column in relative.T]
        return np.mean(densities, axis=0) - 0.5 * np.log(self.unit_variance)


class Fitter(Protocol):
    """What a search needs from the kind of machine that it fits."""

    smallest_ridge: float
    needs_variances: bool

    def cost(self, K: Tensor, table: Table, ridge: float) -> float:
        """Return the cost of a kernel matrix and a ridge on the rows of a table; infinite if they cannot be used."""

    def row_scores(self, left_out: LeftOut) -> np.ndarray:
        """Return a score for the prediction of each left-out row; larger is better."""

    def error_scores(self, left_out: LeftOut) -> np.ndarray:
        """Return a score for the prediction of each left-out row that does not depend on its variance."""

    def shares(self, trials: list[LeftOut]) -> np.ndarray:
        """Return the shares of machines in their average, from their predictions of the same left-out rows."""


def left_out_cost(K: Tensor, table: Table, ridge: float) -> float:
    """Return half the logarithm of the mean squared leave-one-out error, which is in nats like the evidence."""
    solution = ridge_leave_one_out(K, table.y, ridge, table.weights)
    squares = solution.residuals.square().mean(dim=1)
    mean = float(squares.mean() if table.weights is None else table.weights @ squares / table.weights.sum())
    return 0.5 * math.log(max(mean, np.finfo(np.float64).tiny)) if math.isfinite(mean) else math.inf


class RidgeFitter:
    """Kernel ridge regression: everything is judged by the squared errors of left-out rows."""

    smallest_ridge = SMALLEST_RIDGE
    needs_variances = False

    def cost(self, K: Tensor, table: Table, ridge: float) -> float:
        """Return the cost of the leave-one-out errors; see `Fitter`."""
        return left_out_cost(K, table, ridge)

    def row_scores(self, left_out: LeftOut) -> np.ndarray:
        """Return minus the squared error of each row; see `Fitter`."""
        return left_out.error_scores()

    def error_scores(self, left_out: LeftOut) -> np.ndarray:
        """Return minus the squared error of each row; see `Fitter`."""
        return self.row_scores(left_out)

    def shares(self, trials: list[LeftOut]) -> np.ndarray:
        """Return the shares that minimize the squared error of the average.

        The mean of the targets (or their trend, if there is one) takes part in the average. If the machines explain
        little, their shares therefore sum to less than 1, and predictions are shrunk toward the mean.
        """
        trend = trials[0].trend
        predictions = np.stack([*(trial.mean for trial in trials), trend])
        shares = squared_stacking_weights(predictions, trials[0].y, trials[0].weights)[:-1]
        return without_small_shares(shares)


class ClassFitter(RidgeFitter):
    """Kernel ridge regression on class indicators: choices are judged by the log loss of left-out rows.

    Bandwidth and ridge are tuned by squared errors, which have a closed form. All later choices use the likelihood of
    the classes, after a softmax has turned outputs into probabilities.

    Parameters
    ----------
    class_shares : ndarray of shape (c,)
        The shares of the classes, which were subtracted from the indicators.
    """

    def __init__(self, class_shares: np.ndarray) -> None:
        self.class_shares = class_shares

    def row_scores(self, left_out: LeftOut) -> np.ndarray:
        """Return the log probability of the class of each row; see `Fitter`."""
        truth, log_shares = left_out.y + self.class_shares, np.log(self.class_shares)
        calibration = fit_calibration(left_out.mean, truth, left_out.weights, log_shares)
        return (truth * calibration.log_probabilities(left_out.mean)).sum(axis=1)

    def shares(self, trials: list[LeftOut]) -> np.ndarray:
        """Return the slopes of a softmax on the outputs of all machines, divided by their sum; see `Fitter`."""
        truth, outputs = trials[0].y + self.class_shares, np.stack([trial.mean for trial in trials])
        slopes = fit_softmax(outputs, truth, trials[0].weights, np.log(self.class_shares)).slopes
        total = slopes.sum()
        return without_small_shares(slopes / total if total > 0 else np.eye(len(slopes))[0])


class ProcessFitter:
    """A Gaussian process: its choices are judged by the density of left-out rows.

    Parameters
    ----------
    noise_floor : float, default=1e-08
        The smallest noise relative to the output scale.
    by_evidence : bool, default=False
        Whether the length scale and the noise under a metric maximize the evidence, as in the paper, or minimize the
        leave-one-out errors. With heavy tails the evidence drives the noise to zero: on 23 tables the leave-one-out
        errors give better predictions (geometric ratio of the RMSE to CatBoost's .866 against .876).
    """

    needs_variances = True

    def __init__(self, noise_floor: float = SMALLEST_RIDGE, by_evidence: bool = False) -> None:
        self.smallest_ridge, self.by_evidence = noise_floor, by_evidence

    def cost(self, K: Tensor, table: Table, ridge: float) -> float:
        """Return minus the mean log evidence, or the cost of the leave-one-out errors; see `Fitter`."""
        if self.by_evidence:
            return matrix_evidence(K, table.y, math.log(ridge), table.weights, table.repeats)
        return left_out_cost(K, table, ridge)

    def row_scores(self, left_out: LeftOut) -> np.ndarray:
        """Return the log density of each row; see `Fitter`."""
        return left_out.log_densities()

    def error_scores(self, left_out: LeftOut) -> np.ndarray:
        """Return minus the squared error of each row; see `Fitter`."""
        return left_out.error_scores()

    def shares(self, trials: list[LeftOut]) -> np.ndarray:
        """Return the shares that maximize the likelihood of the left-out rows; see `Fitter`.

        With Gaussian densities a few outliers would determine the shares: with lognormal targets the RMSE to the
        noise-free ones was a tenth larger (24 samples of 200 rows).
        """
        log_densities = np.stack([trial.log_densities_with_tails() for trial in trials], axis=1)
        return without_small_shares(stacking_weights(log_densities, trials[0].weights))


def without_small_shares(shares: np.ndarray) -> np.ndarray:
    """Return the shares with small ones set to 0 and the same sum; the largest is always kept."""
    kept = np.where((shares >= SMALLEST_SHARE) | (shares == shares.max()), shares, 0.0)
    return kept * (shares.sum() / kept.sum()) if kept.sum() > 0 else np.eye(len(shares))[0]


def is_clearly_better(scores: np.ndarray, others: np.ndarray, weights: np.ndarray, errors: float = 1.0) -> bool:
    """Return whether the mean score exceeds that of others by more than `errors` standard errors of the difference."""
    gains = scores - others
    total = weights.sum()
    mean = weights @ gains / total
    error = math.sqrt(weights @ (gains - mean) ** 2 / total / len(gains))
    return bool(mean > errors * error)
