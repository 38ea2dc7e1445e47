"""A kernel machine whose values are the latent functions of a Gaussian process classifier."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, as_tensor, walk
from mercer.kernels import Kernel
from mercer.kernels.base import block_numbers
from mercer.tabular_models.calibration import ROWS_IN_DOUBT
from mercer.tabular_models.column_warp import ColumnWarp
from mercer.tabular_models.expected_softmax import (
    deviations,
    expected_softmax,
    latent_root,
    mean_softmax,
    normal_points,
)
from mercer.tabular_models.kept import Kept
from mercer.tabular_models.laplace import Posterior, left_out_latents, log_evidence, softmax_posterior
from mercer.tabular_models.latent_curvature import Curvature, curvature, of_one_variance, one_variance
from mercer.tabular_models.machine import Machine, with_threads_for_its_rows
from mercer.tabular_models.race import Judgment
from mercer.tabular_models.table import Table

# The output scale is found on at most SCALE_ROWS rows, by steps of the factor SCALE_STEP from FIRST_SCALE; at most
# MOST_SCALES scales are tried.
SCALE_ROWS, SCALE_STEP, FIRST_SCALE = 400, 3.0, 9.0
MOST_SCALES = 8
# Left-out rows are predicted from at most MOST_JUDGED rows. The logarithms of the sharpness and of the spread are
# searched between BOUNDS, with an expected softmax of FEW_POINTS points.
MOST_JUDGED, BOUNDS, FEW_POINTS = 500, ((-2.0, 3.0), (-7.0, 2.0)), 32
LEAST_SPREAD = 1.5 * np.exp(BOUNDS[1][0])
# In leaves, the variance of latent functions is computed from this many rows of a leaf, each representing several.
SPREAD_ROWS = 500


@dataclass(frozen=True, eq=False)
class LatentMachine(Machine):
    """Latent functions f_c(x) = sum_j alpha_jc k(x_j, x) at the mode of Laplace's approximation, and their covariance.

    Attributes
    ----------
    offsets : ndarray of shape (c,)
        The means of the latent functions.
    sharpness, spread : float
        Before the softmax, the means of latent values (without the offsets) are multiplied by `sharpness` and their
        covariances by `spread`. If `spread` is 0, covariances are not computed.
    """

    offsets: np.ndarray = field(default_factory=lambda: np.zeros(0))
    sharpness: float = 1.0
    spread: float = 1.0

    @with_threads_for_its_rows
    def probabilities(self, X: np.ndarray, working_memory: float = WORKING_MEMORY, device: Any = None) -> np.ndarray:
        """Return the expected probabilities of the classes at the rows of X, of shape (n, c)."""
        logits = self.sharpness * self.mean(X, working_memory, device) + self.offsets
        mean = as_tensor(logits, dtype=torch.float64, device=device)
        if self.spread == 0.0:
            return torch.softmax(mean, dim=1).cpu().numpy()
        x, result, scale = self._warped(X), np.empty(mean.shape), float(self.output_scales[0])
        n_classes = mean.shape[1]
        for rows, own in self._by_leaf(X):
            own = self._rows_for_variance(own)
            Z, curved = self.basis[own].to(device=device), self._curvature(own, device)
            prepared, part = self.kernel.prepare(Z), []
            bytes_per_row = (block_numbers(*Z.shape) + 2 * n_classes * len(Z)) * Z.element_size()
            for place, (block,) in walk(
                [x[rows]], bytes_per_row=bytes_per_row, working_memory=working_memory, dtype=Z.dtype, device=device
            ):
                asked = self.kernel.prepare(block, beside=prepared)
                K, prior = scale * self.kernel.values(asked, prepared).T, scale * self.kernel.prepared_diagonal(asked)
                covariance = self.spread * curved.covariance(K, prior)
                part.append(expected_softmax(mean[rows][place], covariance))
            result[rows] = torch.cat(part).cpu().numpy()
        return result

    @cached_property
    def _known_curvatures(self) -> Kept[Curvature]:
        return Kept(lambda curved: curved.nbytes)

    @property
    def has_one_variance(self) -> bool:
        """Whether all latent functions of a leaf share one variance, computed from some of its rows.

        In a leaf many rows are near, and variances have little effect. The covariances of all functions need c factors
        of shape (n, n) for each leaf. Compared with these, the log loss changed by less than .003 on six tables of ten
        classes.
        """
        return self.leaves is not None and self.alpha.shape[1] > 2

    def _rows_for_variance(self, own: np.ndarray) -> np.ndarray:
        """Return the rows of a leaf from which the variance is computed: some of them, or all."""
        return own[:: -(-len(own) // SPREAD_ROWS)] if self.has_one_variance else own

    def _curvature(self, own: Any, device: Any) -> Curvature:
        """Return the curvature of the posterior in a leaf, computed from the mode at its rows `own`."""

        def worked_out() -> Curvature:
            leaf = slice(None) if self.leaves is None else np.flatnonzero(self.leaves == self.leaves[own[0]])
            Z = self.basis[own].to(device=device)
            everything = self.basis[leaf].to(device=device)
            K_all = self.kernel.matrix(Z, everything)
            offsets = as_tensor(self.offsets, dtype=Z.dtype, device=device)
            log_p = torch.log_softmax(K_all @ as_tensor(self.alpha[leaf]).to(Z) + offsets, dim=1)
            weights = torch.ones_like(log_p[:, 0]) if self.weights is None else as_tensor(self.weights[own]).to(log_p)
            K = float(self.output_scales[0]) * self.kernel.matrix(Z)
            if not self.has_one_variance:
                return curvature(K, log_p, weights)
            return one_variance(K, log_p, len(everything) / len(Z) * weights)

        return self._known_curvatures.get(0 if self.leaves is None else int(self.leaves[own[0]]), worked_out)


class LeftOutLatents(NamedTuple):
    """Leave-one-out latent values of rows that the metric was not learned from.

    Attributes
    ----------
    mean : tensor of shape (n, c)
        The means without the offsets.
    covariance : tensor of shape (n, c, c)
    targets : tensor of shape (n, c)
    weights : tensor of shape (n,)
    """

    mean: Tensor
    covariance: Tensor
    targets: Tensor
    weights: Tensor


def latent_machine(
    machine: Machine,
    table: Table,
    scale: float,
    start: Tensor | None = None,
    out_of_time: Callable[[], bool] = lambda: False,
) -> LatentMachine:
    """Return the latent functions with the kernel of a machine, separately in each of its leaves if it has any.

    Parameters
    ----------
    machine : Machine
        A machine on all rows of the table.
    table : Table
        A table whose targets are the centered indicators of the classes.
    scale : float
        The prior variance of the latent functions.
    start : tensor of shape (n, c), optional
        The coefficients of all rows at the start of Newton's method.
    out_of_time : callable
        Called before every Newton step of a leaf but its first; once it returns True, the steps end.
    """
    pieces = [np.arange(len(table))]
    if machine.partition is not None and machine.leaves is not None:
        pieces = [np.flatnonzero(machine.leaves == leaf) for leaf in range(machine.partition.n_leaves)]
    alpha = np.empty(table.y.shape)
    for rows in pieces:
        K, targets, weights, offsets = _parts(machine.kernel, machine.columns, table.take(rows))
        begin = None if start is None else start[rows]
        found = softmax_posterior(scale * K, targets, weights, offsets, begin, out_of_time)
        alpha[rows] = scale * found.coefficients.cpu().numpy()
    return LatentMachine(
        machine.kernel,
        machine.columns,
        machine.rows,
        alpha,
        machine.ridge,
        machine.share,
        np.full(alpha.shape[1], scale),
        machine.weights,
        machine.partition,
        machine.leaves,
        offsets=np.log(table.center),
    )


class Scale(NamedTuple):
    """The prior variance of latent functions, and their coefficients if it was found on all rows, otherwise None."""

    value: float
    coefficients: Tensor | None


def best_scale(
    machine: Machine, table: Table, near: float = FIRST_SCALE, out_of_time: Callable[[], bool] = lambda: False
) -> Scale:
    """Return the prior variance that maximizes the evidence on some rows of a table, by local search on a grid.

    Parameters
    ----------
    machine : Machine
    table : Table
    near : float, default=9.0
        The prior variance at which the search starts.
    out_of_time : callable
        Called before every step; once it returns True, the search ends.
    """
    rows = np.flatnonzero(machine.leaves == 0) if machine.leaves is not None else np.arange(len(table))
    step = -(-len(rows) // SCALE_ROWS)
    some = rows[::step]
    K, targets, weights, offsets = _parts(machine.kernel, machine.columns, table.take(some))
    modes: dict[int, Posterior] = {}
    evidences: dict[int, float] = {}

    def evidence(place: int, beside: int) -> float:
        if place not in modes:
            start = modes[beside].coefficients if beside in modes else None
            covariance = near * SCALE_STEP**place * K
            modes[place] = softmax_posterior(covariance, targets, weights, offsets, start)
            evidences[place] = log_evidence(covariance, modes[place], weights, offsets)
        return evidences[place]

    here = 0
    for direction in (1, -1):
        while len(modes) < MOST_SCALES and not out_of_time():
            if evidence(here, here) >= evidence(here + direction, here):
                break
            here += direction
    if here not in modes:
        return Scale(near, None)
    return Scale(near * SCALE_STEP**here, modes[here].coefficients if len(some) == len(table) else None)


def left_out_of(machine: LatentMachine, judgments: Sequence[Judgment], table: Table) -> LeftOutLatents:
    """Return the latent values of left-out rows, by machines whose metric was not learned from these rows.

    Parameters
    ----------
    machine : LatentMachine
        The machine on all rows, at whose coefficients Newton's method starts.
    judgments : sequence of Judgment
        Kernels whose metrics were learned without the rows to predict. Judgments with the same kernel and the same rows
        of the machine share one machine; this is the case if the metric is not learned.
    table : Table
    """
    found, scale = [], float(machine.output_scales[0])
    for _, group in groupby(judgments, key=lambda each: (id(each.iterate.kernel), each.rows.tobytes())):
        alike = list(group)
        kernel, rows = alike[0].iterate.kernel, alike[0].rows
        kept = np.arange(0, len(rows), -(-len(rows) // MOST_JUDGED))
        judged = np.concatenate([np.flatnonzero(np.isin(kept, each.judged)) for each in alike])
        K, targets, weights, offsets = _parts(kernel, machine.columns, table.take(rows[kept]))
        start, inside = as_tensor(machine.alpha[rows[kept]] / scale).to(K), torch.from_numpy(judged).to(K.device)
        K = scale * K
        posterior = softmax_posterior(K, targets, weights, offsets, start)
        mean, covariance = left_out_latents(K, posterior, targets, weights, offsets, inside)
        if machine.has_one_variance:  # sharpness and spread must suit the variance that the machine predicts with
            log_p = torch.log_softmax(K @ posterior.coefficients + offsets, dim=1)
            one = one_variance(K, log_p, weights)
            covariance = of_one_variance(one.left_out_variance(K, inside), targets.shape[1])
        found.append([mean, covariance, targets[inside], weights[inside]])
    return LeftOutLatents(*(torch.cat(parts) for parts in zip(*found, strict=True)))


class Sharpness(NamedTuple):
    """The factors of the means and of the covariances of latent values before the softmax."""

    sharpness: float
    spread: float


def best_sharpness(latents: Sequence[LeftOutLatents], shares: Sequence[float], offsets: Tensor) -> Sharpness:
    """Return the factors that minimize the log loss of the average of machines on left-out rows.

    Laplace's Gaussian is centered at the mode of a skewed posterior and is wider than the posterior, so its
    probabilities are less extreme than they could be. A flexible metric may make them too extreme.
    """
    targets, weights = latents[0].targets, latents[0].weights
    doubt = ROWS_IN_DOUBT / (float(weights.sum()) + 2.0 * ROWS_IN_DOUBT)
    targets = (1.0 - doubt) * targets + doubt * torch.softmax(offsets, dim=0)

    roots = [latent_root(each.covariance) for each in latents]
    apart = [deviations(root, normal_points(root.shape[2], FEW_POINTS)) for root in roots]

    def loss(logs: np.ndarray) -> float:
        sharpness, spread = np.exp(logs)
        average = torch.zeros_like(targets)
        for share, each, deviation in zip(shares, latents, apart, strict=True):
            average += share * mean_softmax(sharpness * each.mean + offsets, spread**0.5 * deviation)
        return -float((weights[:, None] * targets * average.clamp(min=1e-12).log()).sum())

    begin = [[0.0, 0.0], [1.0, 0.0], [0.5, -2.0]]
    options = {"xatol": 0.05, "fatol": 0.05, "initial_simplex": begin}
    found = minimize(loss, begin[0], method="Nelder-Mead", bounds=BOUNDS, options=options)
    sharpness, spread = (float(factor) for factor in np.exp(found.x))
    # At the lower bound, the covariances do not improve the predictions of left-out rows.
    return Sharpness(sharpness, spread if spread > LEAST_SPREAD else 0.0)


def _parts(kernel: Kernel, columns: ColumnWarp, table: Table) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the kernel matrix, targets and weights of the rows of a table, and the means of the latent functions."""
    center = as_tensor(table.center).to(table.y)
    K = kernel.matrix(as_tensor(columns.transform(table.X.astype(np.float64))).to(table.y))
    return K, table.y + center, table.mass, center.log()


def average_probabilities(
    machines: Sequence[LatentMachine], X: np.ndarray, working_memory: float, device: Any
) -> np.ndarray:
    """Return the average of the probabilities of several machines, weighted by their shares, which sum to 1."""
    return np.sum([m.share * m.probabilities(X, working_memory, device) for m in machines], axis=0)
