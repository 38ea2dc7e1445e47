"""How a kernel discriminant chooses its bandwidth and its ridge, from errors of rows left out, in closed form.

Functions of all rows: a discriminant is a ridge regression of class scores, so the squared error with which the ridge
regression of the class indicators predicts rows left out stands for how well it generalizes. Bandwidth and ridge are
climbed to from a start that is nearly right, on a part of the rows: some fifteen factorizations. Functions of
landmarks: one pass over the rows gives the left-out values for every ridge, and with them the log loss itself.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.discriminant.directions import smoother_gram
from mercer.discriminant.gaussian_classes import gaussian_classes
from mercer.discriminant.groups import Discriminants, Groups, double_centered
from mercer.discriminant.landmark_directions import LandmarkBasis, n_class_components
from mercer.discriminant.landmark_rows import LandmarkRows
from mercer.discriminant.left_out import left_out_or_own
from mercer.kernels import BandwidthKernel, Kernel
from mercer.linalg import cholesky, ridge_leave_one_out
from mercer.rows import some_of_rare_classes
from mercer.selection import climb

# Bandwidths are climbed to from this multiple of the median distance, in steps of the root of 2 at last.
FIRST_BANDWIDTH = 0.5
BANDWIDTH_STEP = 2.0
BANDWIDTHS = (0.05, 20.0)
# The step of a climb at which a kernel keeps its bandwidth.
STAYS = 2
# Ridges cut off the eigenvalues of the kernel matrix below some size, relative to the mean of its diagonal; these are
# climbed to in steps of the root of 10. With R = I the matrix is squared, so that smaller ones are rounding.
FIRST_CUTOFF = 1e-2
CUTOFF_STEP = 10.0
SMALLEST_CUTOFF = {"rkhs": 1e-4, "identity": 1e-3}
LARGEST_CUTOFF = 1e2
# A step must lower the error by this much, relative to what it is.
SMALLEST_GAIN = 1e-3
# The ridge of the regression is multiplied by the smallest correlation of classes and regression, not below this.
LEAST_CORRELATION = 0.1
# The most rows that a search is made on, without landmarks and with them, and the most landmarks.
SEARCH_ROWS = 1000
SEARCH_ROWS_OF_LANDMARKS = 4000
SEARCH_LANDMARKS = 500


class Scales(NamedTuple):
    """A factor for the kernel's bandwidths and a ridge."""

    factor: float
    ridge: float


class Choice(NamedTuple):
    """What a climb has come to.

    Attributes
    ----------
    kernel : Kernel or None
        With its bandwidth; None if its matrix was given.
    ridge : float
        Of the regression of the class indicators.
    cost : float
        The logarithm of the error of rows left out.
    place : tuple of int
        Where on the grid of bandwidths and ridges this is.
    """

    kernel: Kernel | None
    ridge: float
    cost: float
    place: tuple[int, int]


class JudgedRows(NamedTuple):
    """Rows that are looked at beside the sums over all.

    Attributes
    ----------
    rows : ndarray of int
        Their numbers, in order: a draw, and some of each class that is rare in it.
    drawn : ndarray of int or None
        The places among these of the draw itself, from which landmarks and the median distance come; None if all are.
    """

    rows: np.ndarray
    drawn: np.ndarray | None


class Freedom(NamedTuple):
    """What may be chosen; `ridge` is None if it is, else the number that was given."""

    bandwidth: bool
    ridge: float | None

    @property
    def is_none(self) -> bool:
        return not self.bandwidth and self.ridge is not None


def is_free(kernel: Kernel) -> bool:
    """Whether the kernel has a bandwidth, or several, and none of them is a number yet."""
    leaves = [leaf for leaf in kernel.leaves() if isinstance(leaf, BandwidthKernel)]
    return bool(leaves) and all(leaf.bandwidth == "median" for leaf in leaves)  # type: ignore[attr-defined]


def ridge_of_cutoff(cutoff: float, diagonal: float, regularizer: str) -> float:
    """Return the ridge that cuts eigenvalues of K off below `cutoff` times the mean of its diagonal.

    That is the cut-off itself for R = K, and its square for R = I.
    """
    return (cutoff * (diagonal or 1.0)) ** (1 if regularizer == "rkhs" else 2)


def candidate_ridges(kernel: Kernel, X: np.ndarray, regularizer: str) -> list[float]:
    """Return the ridges that landmark functions try: one pass over the rows serves them all."""
    diagonal = float(np.mean(kernel.diagonal(X)))
    low, high = 2 * math.log10(SMALLEST_CUTOFF[regularizer]), 2 * math.log10(LARGEST_CUTOFF)
    cutoffs = [10.0 ** (p / 2) for p in range(round(low), round(high) + 1)]
    return [ridge_of_cutoff(cutoff, diagonal, regularizer) for cutoff in cutoffs]


def ridges_that_keep(basis: LandmarkBasis, ridges: list[float], n_components: int) -> list[float]:
    """Return the ridges with which no class component is lost to a principal one; the smallest, if all lose some."""
    wanted = min(n_components, len(basis.counts) - 1)
    return [r for r in ridges if n_class_components(basis, r) >= wanted] or [min(ridges)]


def factor_at(step: int) -> float:
    """Return the multiple of the median distance at a step of a climb."""
    return FIRST_BANDWIDTH * BANDWIDTH_STEP ** (step / 2)


def cutoff_at(step: int) -> float:
    """Return the cut-off at a step of a climb."""
    return FIRST_CUTOFF * CUTOFF_STEP ** (step / 2)


def left_out_errors(K: Tensor, groups: Groups, ridge: float, regularizer: str, center: bool) -> Tensor:
    """Return the squared leave-one-out error of the class indicators at each row, summed over the classes.

    Of the ridge regression with the smoother of the discriminant, and with an intercept if the features are centered: K
    is then double-centered.
    """
    Y = torch.nn.functional.one_hot(groups.of_row, len(groups.counts)).to(K.dtype)
    residuals = ridge_leave_one_out(smoother_gram(K, regularizer), Y, ridge, intercept=center).residuals
    return residuals.square().sum(dim=1)


def discriminant_ridge(K: Tensor, groups: Groups, ridge: float, regularizer: str, n_components: int) -> float:
    """Return the ridge of (13) whose components are no smoother than the regression of the indicators with `ridge`.

    A component of ratio mu regresses its class means with the ridge mu / (mu - 1) lambda (`directions.py`). For that to
    be `ridge`, lambda must be `ridge` times the component's s = 1 - 1/mu, an eigenvalue of J^T H J: the squared
    correlation between its class scores and their regression. With a lambda that is too large a direction is lost: its
    ratio falls below 1 and a principal component takes its place. So the smallest s of the components that are wanted
    is taken, down to a tenth.
    """
    J = groups.indicators()
    smoothed = J - ridge * cholesky(smoother_gram(K, regularizer), shift=ridge).solve(J)
    correlations = torch.linalg.eigvalsh(J.T @ smoothed).flip(0)
    return ridge * min(1.0, max(LEAST_CORRELATION, float(correlations[n_components - 1])))


def left_out_log_loss(found: Discriminants, groups: Groups) -> float:
    """Return the mean log loss of the rows' classes, each row left out; infinite if there is no direction.

    A class of one row, left out, is not there to be predicted: its row is not judged.
    """
    of_row = groups.of_row.cpu().numpy()
    judges = np.flatnonzero(groups.counts.cpu().numpy()[of_row] > 1)
    if found.left_out.shape[1] == 0 or not len(judges):
        return math.inf
    shares = groups.counts.cpu().numpy() / len(of_row)
    values = left_out_or_own(found, groups).cpu().numpy()
    return gaussian_classes(values, of_row, shares, np.ones(len(shares)), judges).log_loss


def part_of(groups: Groups, rows: np.ndarray) -> Groups:
    """Return the classes of some rows, numbered anew: a class that the draw has missed would have no mean."""
    present, index = torch.unique(groups.of_row[torch.from_numpy(rows).to(groups.of_row.device)], return_inverse=True)
    return Groups.from_index(index, len(present))


def chosen_scales(
    matrices: Callable[[float], Tensor],
    error: Callable[[Tensor, float], float],
    diagonal: float,
    regularizer: str,
    freedom: Freedom,
    start: tuple[int, int] = (0, 0),
    fine: bool = True,
) -> tuple[Scales, float, tuple[int, int]]:
    """Climb to the bandwidth and the ridge with the smallest error of rows left out; return its cost and place too.

    Parameters
    ----------
    matrices : callable
        From a factor for the bandwidth to the kernel matrix.
    error : callable
        Of a kernel matrix and a ridge.
    diagonal : float
        The mean of the kernel's diagonal.
    regularizer : {"identity", "rkhs"}
    freedom : Freedom
    start : tuple of int, default=(0, 0)
        The place where the climb begins.
    fine : bool, default=True
        Whether to end with smaller steps.

    Notes
    -----
    Some fifteen errors, half of them without the fine steps; those of one bandwidth, which come one after another,
    share its matrix.
    """
    latest: dict[int, Tensor] = {}

    def scales(place: tuple[int, int]) -> Scales:
        factor = factor_at(place[0]) if freedom.bandwidth else 1.0
        chosen = ridge_of_cutoff(cutoff_at(place[1]), diagonal, regularizer)
        return Scales(factor, chosen if freedom.ridge is None else freedom.ridge)

    def from_start(steps: tuple[int, int]) -> tuple[int, int]:
        return start[0] + steps[0], start[1] + steps[1]

    def cost(steps: tuple[int, int]) -> float:
        place = from_start(steps)
        factor, ridge = scales(place)
        if place[0] not in latest:
            latest.clear()
            latest[place[0]] = matrices(factor)
        return relative(error(latest[place[0]], ridge))

    def is_allowed(steps: tuple[int, int]) -> bool:
        place = from_start(steps)
        return (
            (freedom.bandwidth or place[0] == 0)
            and (freedom.ridge is None or place[1] == 0)
            and BANDWIDTHS[0] <= factor_at(place[0]) <= BANDWIDTHS[1]
            and 0.999 * SMALLEST_CUTOFF[regularizer] <= cutoff_at(place[1]) <= 1.001 * LARGEST_CUTOFF
        )

    steps, lowest = climb(cost, is_allowed, smallest_gain=SMALLEST_GAIN, fine=fine)
    return scales(from_start(steps)), lowest, from_start(steps)


def tuned(
    kernel: Kernel | None,
    x: Tensor,
    groups: Groups,
    regularizer: str,
    center: bool,
    freedom: Freedom,
    start: tuple[int, int] = (0, 0),
    fine: bool = True,
) -> Choice:
    """Return the kernel with the bandwidth, and the ridge, of the smallest error of rows left out.

    Parameters
    ----------
    kernel : Kernel or None
        With numbers for its bandwidths.
    x : tensor of shape (n, d)
        The kernel matrix itself if the kernel is None.
    groups : Groups
        The classes of the rows.
    regularizer : {"identity", "rkhs"}
    center : bool
    freedom, start, fine
        As for `chosen_scales`.
    """

    def matrices(factor: float) -> Tensor:
        return double_centered(of_factor(factor)) if center else of_factor(factor)

    def error(K: Tensor, ridge: float) -> float:
        return float(left_out_errors(K, groups, ridge, regularizer, center).mean())

    of_factor = (lambda _: x) if kernel is None else kernel.matrices(x)
    diagonal = float((x.diagonal() if kernel is None else kernel.diagonal(x)).mean())
    options = (diagonal, regularizer, freedom, start, fine)
    (factor, ridge), cost, place = chosen_scales(matrices, error, *options)
    chosen = kernel.rescaled(factor) if kernel is not None and freedom.bandwidth else kernel
    return Choice(chosen, ridge, cost, place)


def relative(loss: float) -> float:
    """Return the logarithm of a loss or an error, so that gains are relative; below 1e-3 they are as good as none."""
    return math.log(loss + 1e-3) if math.isfinite(loss) else math.inf


def choose_with_landmarks(
    kernel: Kernel,
    X: np.ndarray,
    landmarks: np.ndarray,
    groups: Groups,
    n_components: int,
    regularizer: str,
    center: bool,
    working_memory: float,
    random: np.random.RandomState,
) -> Kernel:
    """Return the kernel with the best bandwidth for functions of landmarks, each judged with its best ridge.

    Searched with at most 500 of the landmarks and 4000 of the rows: what is best for functions of few landmarks is
    wider than what is best for functions of all rows.
    """
    rows = drawn_rows(len(X), SEARCH_ROWS_OF_LANDMARKS, random)
    few = landmarks[drawn_rows(len(landmarks), SEARCH_LANDMARKS, random)]
    part, searched = part_of(groups, rows), X[rows]
    wanted = min(n_components, len(part.counts) - 1)
    if wanted == 0:
        return kernel

    def rescaled(place: tuple[int, int]) -> Kernel:
        return kernel.rescaled(factor_at(place[0]))

    def cost(place: tuple[int, int]) -> float:
        seen = LandmarkRows(searched, few, rescaled(place), center, working_memory, groups.counts.device)
        basis = seen.basis(part, regularizer)
        ridges = ridges_that_keep(basis, candidate_ridges(kernel, few, regularizer), wanted)
        tried = seen.discriminants(basis, part, ridges, wanted)
        return relative(min(left_out_log_loss(found, part) for found in tried))

    def is_allowed(place: tuple[int, int]) -> bool:
        return place[1] == 0 and BANDWIDTHS[0] <= factor_at(place[0]) <= BANDWIDTHS[1]

    best, _ = climb(cost, is_allowed, smallest_gain=SMALLEST_GAIN, fine=True)
    return rescaled(best)


def judged_rows(groups: Groups, most: int, random: np.random.RandomState) -> JudgedRows:
    """Return all rows, or `most` of them drawn at random with a hundred of each class."""
    n = len(groups.of_row)
    drawn = drawn_rows(n, most, random)
    if len(drawn) == n:
        return JudgedRows(drawn, None)
    rows = np.union1d(drawn, some_of_rare_classes(groups.of_row.cpu().numpy(), len(groups.counts), drawn))
    return JudgedRows(rows, np.searchsorted(rows, drawn) if len(rows) > len(drawn) else None)


def drawn_rows(n: int, most: int, random: np.random.RandomState) -> np.ndarray:
    """Return all n rows, or `most` of them drawn at random, in order."""
    return np.arange(n) if n <= most else np.sort(random.choice(n, most, replace=False))
