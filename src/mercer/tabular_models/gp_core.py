"""Gaussian process candidates: their parameters by evidence, their leave-one-out densities, the average of several."""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from mercer.blocks import as_tensor
from mercer.kernels import BandwidthKernel, Kernel
from mercer.linalg import RidgeSolution, cholesky, ridge_leave_one_out
from mercer.mahalanobis import Mahalanobis
from mercer.selection import Candidate
from mercer.tabular_models.component import Component
from mercer.tabular_models.evidence import Maximum, matrix_evidence, maximize_evidence
from mercer.tabular_models.landmark_ridge import (
    evidence_bound,
    landmark_factors,
    output_scales,
)
from mercer.tabular_models.landmark_table import through_landmarks
from mercer.tabular_models.recursion import next_metric
from mercer.tabular_models.search import SCREEN_ROWS
from mercer.tabular_models.table import Clock, Table

# Where the search for the noise begins, relative to the output scale.
FIRST_NOISE = 0.05
# Steps of the evidence's climb for one length scale; for one a column; and for the latter on the rows of the screen.
STEPS_SHARED, STEPS_ARD, STEPS_SCREEN = 12, 60, 12


class EvidenceFit:
    """The `Fit` of a Gaussian process: length scales and noise of largest evidence, scored by leave-one-out density.

    Parameters
    ----------
    ard : bool
        One length scale a column, or one for all under the kernel's own metric.
    noise_floor : float
    n_starts : int
        Of the climb with a length scale a column: from the best shared one, from the diagonal of the gradients' outer
        product, then from random points around the first.
    max_iter : int
    clock : Clock
    random : RandomState
    tune_bandwidth : bool
        False keeps the bandwidth, and learns the noise alone.
    log_noise : float, optional
        Of a kernel that was tuned before: where to begin. A length scale a column then begins from that kernel's own.
    """

    def __init__(
        self,
        *,
        ard: bool = False,
        noise_floor: float,
        n_starts: int = 1,
        max_iter: int = STEPS_ARD,
        clock: Clock,
        random: np.random.RandomState,
        tune_bandwidth: bool = True,
        log_noise: float | None = None,
    ) -> None:
        self.ard, self.noise_floor, self.n_starts, self.max_iter = ard, noise_floor, n_starts, max_iter
        self.clock, self.random, self.tune_bandwidth, self.log_noise = clock, random, tune_bandwidth, log_noise

    def __call__(self, kernel: Kernel, table: Table, warp: Any) -> Candidate:
        """Return the kernel with its length scales and noise at their best, fitted and scored on the table."""
        log_noise = self.log_noise
        if not self.ard or log_noise is None:
            # A length scale a column begins from the best one for all of them, for which few rows will do.
            rows = table.sample(SCREEN_ROWS, self.random) if self.ard else table
            begin = math.log(FIRST_NOISE) if log_noise is None else log_noise
            maximum = self._climb_shared(kernel, rows.warped(warp), rows, begin)
            log_noise = maximum.log_noise
            kernel = _with_shared_scale(kernel, float(maximum.log_scales[0]), table.X.shape[1])
            if self.ard and len(table) > 2 * len(rows):
                # Most of the climb, and all starts, on few rows; the last steps on all.
                kernel, log_noise = self._ard(kernel, rows, warp, log_noise, self.n_starts)
                kernel, log_noise = self._ard(kernel, table, warp, log_noise, n_starts=1)
                return scored(kernel, math.exp(log_noise), table, warp)
        if self.ard:
            kernel, log_noise = self._ard(kernel, table, warp, log_noise, self.n_starts)
        return scored(kernel, math.exp(log_noise), table, warp)

    def _ard(self, kernel: Kernel, rows: Table, warp: Any, log_noise: float, n_starts: int) -> tuple[Kernel, float]:
        maximum = self._climb_ard(kernel, rows.warped(warp), rows, log_noise, n_starts)
        return _with_scales(kernel, maximum.log_scales, rows.X.shape[1]), maximum.log_noise

    def _climb_shared(self, kernel: Kernel, Z: Tensor, table: Table, log_noise: float) -> Maximum:
        projected = kernel.single_metric().project(Z)
        options = {
            "weights": table.weights,
            "repeats": table.repeats,
            "noise_floor": self.noise_floor,
            "out_of_time": self.clock.is_over,
        }
        if not self.tune_bandwidth:
            return _best_noise(kernel, projected, table, self.noise_floor)
        return maximize_evidence(kernel, projected, table.y, np.zeros(1), log_noise, max_iter=STEPS_SHARED, **options)  # type: ignore[arg-type]

    def _climb_ard(self, kernel: Kernel, Z: Tensor, table: Table, log_noise: float, n_starts: int) -> Maximum:
        d = Z.shape[1]
        given = kernel.single_metric()
        first = np.zeros(d) if given.factor is None else -np.log(np.maximum(np.asarray(given.factor), 1e-4))
        starts = [first]
        if n_starts > 1:
            fitted = ridge_leave_one_out(kernel.matrix(Z), table.y, math.exp(log_noise), table.weights)
            learned = next_metric(kernel, Z, Z, fitted.alpha, "diagonal", table.weights)
            factor = np.ones(d) if learned.factor is None else as_tensor(learned.factor).cpu().numpy()
            starts.append(-np.log(np.maximum(factor, 1e-3)))
        starts += [first + self.random.normal(size=d) for _ in range(n_starts - 2)]
        found = [
            maximize_evidence(
                kernel,
                Z,
                table.y,
                start,
                log_noise,
                weights=table.weights,
                repeats=table.repeats,
                noise_floor=self.noise_floor,
                max_iter=self.max_iter,
                out_of_time=self.clock.is_over,
            )
            for start in starts
        ]
        return min(found, key=lambda maximum: maximum.value)


def _best_noise(kernel: Kernel, projected: Tensor, table: Table, noise_floor: float) -> Maximum:
    """Return the noise of largest evidence at the kernel's own bandwidth."""
    K = kernel.with_metric(None).matrix(projected)

    def value(log_noise: float) -> float:
        return matrix_evidence(K, table.y, log_noise, table.weights, table.repeats)

    found = minimize_scalar(value, bounds=(math.log(noise_floor), 3.0), method="bounded", options={"xatol": 0.01})
    return Maximum(np.zeros(1), float(found.x), float(found.fun), int(found.nfev))


def _with_scales(kernel: Kernel, log_scales: np.ndarray, d: int) -> Kernel:
    """Return the kernel with a length scale a column as its metric, of trace d; the bandwidth takes their size."""
    metric = Mahalanobis(np.exp(-np.broadcast_to(log_scales, (d,))))
    if not _size_is_in_bandwidths(kernel):
        return kernel.with_metric(metric)
    size = float(np.sqrt(d / np.sum(np.asarray(metric.factor) ** 2)))
    return kernel.with_metric(metric.normalized()).rescaled(size)


def _with_shared_scale(kernel: Kernel, log_scale: float, d: int) -> Kernel:
    """Return the kernel with all its differences divided by one scale: in its bandwidths, or else in its metric."""
    if log_scale == 0.0 or _size_is_in_bandwidths(kernel):
        return kernel.rescaled(math.exp(log_scale)) if log_scale else kernel
    factor = kernel.single_metric().factor
    factor = np.ones(d) if factor is None else as_tensor(factor).cpu().numpy()
    return kernel.with_metric(Mahalanobis(factor * math.exp(-log_scale)))


def _size_is_in_bandwidths(kernel: Kernel) -> bool:
    """Whether every term of the kernel has a bandwidth, so that the size of the metric can stay what it is."""
    return all(isinstance(leaf, BandwidthKernel) for leaf in kernel.leaves())


def scored(kernel: Kernel, ridge: float, table: Table, warp: Any) -> Candidate:
    """Fit a kernel and a ridge on all rows of the table, and score them by their leave-one-out log density."""
    solution = ridge_leave_one_out(kernel.matrix(table.warped(warp)), table.y, ridge, table.weights)
    log_densities, _ = left_out_densities(solution, table)
    weights = table.observations.weights
    score = float(weights @ log_densities / weights.sum())
    return Candidate(
        kernel, ridge, {"row_scores": log_densities}, score if math.isfinite(score) else -math.inf, solution
    )


class LeftOut(NamedTuple):
    """Predictions of every observation by the fit without its group: mean and variance for an output scale of 1."""

    mean: np.ndarray
    unit_variance: np.ndarray


def left_out_moments(solution: RidgeSolution, table: Table) -> LeftOut:
    """Return the leave-one-out moments of every observation, noise included; groups are left out as a whole."""
    y = table.y.to(solution.residuals)
    mass = torch.ones_like(solution.variances) if table.weights is None else table.weights.to(solution.variances)
    mean = (y - solution.residuals).cpu().numpy()
    # The variance of the group's mean has the noise of its weight; an observation has the noise of one.
    variance = solution.variances - solution.ridge / mass + solution.ridge
    group = table.observations.group
    return LeftOut(mean[group], variance.clamp(min=1e-300).cpu().numpy()[group])


def left_out_densities(solution: RidgeSolution, table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the log density of each observation when left out, mean over outputs, and the output scales behind it.

    The scales are those under which the densities are largest: the mean of the squared errors over the variances.
    """
    y, _, weights = table.observations
    moments = left_out_moments(solution, table)
    squares = (y - moments.mean) ** 2 / moments.unit_variance[:, None]
    scales = np.maximum(weights @ squares / weights.sum(), np.finfo(np.float64).tiny)
    log_densities = -0.5 * (np.log(2 * math.pi * scales * moments.unit_variance[:, None]) + squares / scales)
    return log_densities.mean(axis=1), scales


class Fitted(NamedTuple):
    """A component on all rows, which rows its basis is, the log densities of (some) rows left out, the evidence."""

    component: Component
    basis_index: np.ndarray
    log_densities: np.ndarray
    weights: np.ndarray
    log_evidence: float
    evidence_scales: np.ndarray


def exact_component(candidate: Candidate, table: Table, warp: Any, given_scales: np.ndarray | None) -> Fitted:
    """Return the component of a candidate fitted on all rows of the table, with the factor for its variances."""
    kernel, ridge, y = candidate.kernel_used(), candidate.ridge, table.y
    Z = table.warped(warp)
    A = kernel.matrix(Z)
    A.diagonal().add_(ridge if table.weights is None else ridge / table.weights)
    factor = cholesky(A)
    alpha = factor.solve(y)
    q = (y * alpha).sum(dim=0)
    log_determinant = factor.log_determinant()
    variances = 1.0 / torch.cholesky_inverse(factor.lower, out=A).diagonal()
    solution = RidgeSolution(ridge, alpha, alpha * variances[:, None], variances)
    log_densities, scales = left_out_densities(solution, table)
    count, scatter = table.repeats or (0, 0.0)
    n, outputs = len(y) + count, y.shape[1]
    s = ((q + scatter / ridge) / n).clamp(min=torch.finfo(y.dtype).tiny)
    log_determinant = log_determinant + count * math.log(ridge)
    if given_scales is not None:
        s = torch.as_tensor(given_scales).to(s)
    quadratic = (q + scatter / ridge) / s
    log_evidence = -0.5 * float((n * torch.log(2 * math.pi * s) + quadratic).sum() + outputs * log_determinant)
    shared = 0.0 if given_scales is not None else ridge * table.shared_noise(ridge * scales)
    component = Component(
        kernel,
        table.columns(warp),
        Z.cpu().numpy(),
        alpha.cpu().numpy(),
        ridge,
        1.0,
        scales if given_scales is None else given_scales,
        shared,
        factor.lower.cpu().numpy(),
    )
    return Fitted(
        component, np.arange(len(Z)), log_densities, table.observations.weights, log_evidence, s.cpu().numpy()
    )


def landmark_component(
    candidate: Candidate,
    table: Table,
    warp: Any,
    n_landmarks: int,
    method: str,
    noise_floor: float,
    random_state: int,
    working_memory: float,
    given_scales: np.ndarray | None = None,
) -> Fitted:
    """Return the component of a candidate on m landmarks: the noise of the largest bound on the evidence, by one pass.

    With `given_scales`, the candidate's own noise and these output scales are kept.
    """
    kernel = candidate.kernel_used()
    seen = through_landmarks(kernel, table, warp, n_landmarks, method, random_state, working_memory)
    if given_scales is None:
        found = minimize_scalar(
            lambda log_noise: evidence_bound(seen.sums, math.exp(log_noise)),
            bounds=(math.log(noise_floor), 3.0),
            method="bounded",
            options={"xatol": 0.01},
        )
        ridge = math.exp(found.x)
    else:
        ridge = candidate.ridge
    (solution,) = seen.solutions([ridge])
    log_densities, scales = left_out_densities(solution, seen.rows)
    lower, gained = landmark_factors(seen.sums, kernel, seen.landmarks, ridge)
    component = Component(
        kernel,
        table.columns(warp),
        seen.landmarks.cpu().numpy(),
        solution.alpha.cpu().numpy(),
        ridge,
        1.0,
        scales if given_scales is None else given_scales,
        0.0,
        lower.cpu().numpy(),
        gained.cpu().numpy(),
    )
    bound = -len(table) * table.y.shape[1] * evidence_bound(seen.sums, ridge)
    evidence_scales = output_scales(seen.sums, ridge).cpu().numpy()
    return Fitted(component, seen.row_index, log_densities, seen.rows.observations.weights, bound, evidence_scales)


def bandwidth_is_free(kernel: Kernel) -> bool:
    """Whether the kernel has a bandwidth to tune."""
    return any(isinstance(leaf, BandwidthKernel) for leaf in kernel.leaves())
