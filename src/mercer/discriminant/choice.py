"""How a kernel discriminant chooses its bandwidth and its ridge, by errors of left-out rows in closed form.

On all rows, a discriminant is a ridge regression of class scores. The squared leave-one-out error of the ridge
regression of the class indicators therefore measures how well it generalizes. It is minimized by a local search on a
part of the rows, which takes about fifteen factorizations. On landmarks, one pass over the rows gives the left-out
values for every ridge, so that the log loss itself is minimized.
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
from mercer.rows import drawn_rows, some_of_rare_classes
from mercer.selection import climb

# The search for the bandwidth starts at this multiple of the median distance and stays between these two multiples. A
# step multiplies or divides it by BANDWIDTH_STEP, a fine step by the square root of that.
FIRST_BANDWIDTH = 0.5
BANDWIDTH_STEP = 2.0
BANDWIDTHS = (0.05, 20.0)
# The step of the search at which `factor_at` is 1, so that a kernel keeps its bandwidth.
STAYS = 2
# A ridge suppresses the eigenvalues of the kernel matrix below a cut-off, relative to the mean of its diagonal. The
# search for the cut-off starts at FIRST_CUTOFF; a fine step is the square root of CUTOFF_STEP. With R = I the matrix is
# squared, and smaller cut-offs would be below the rounding errors.
FIRST_CUTOFF = 1e-2
CUTOFF_STEP = 10.0
SMALLEST_CUTOFF = {"rkhs": 1e-4, "identity": 1e-3}
LARGEST_CUTOFF = 1e2
# A step must lower the error by at least this much, relative to the error.
SMALLEST_GAIN = 1e-3
# The ridge of the regression is multiplied by the smallest squared correlation of class scores and their regression, or
# by this number if that is larger (see `discriminant_ridge`).
LEAST_CORRELATION = 0.1
# The largest number of rows in a search, without landmarks and with them, and the largest number of landmarks.
SEARCH_ROWS = 1000
SEARCH_ROWS_OF_LANDMARKS = 4000
SEARCH_LANDMARKS = 500


class Scales(NamedTuple):
    """A factor by which the bandwidths of the kernel are multiplied, and a ridge."""

    factor: float
    ridge: float


class Choice(NamedTuple):
    """The result of a search.

    Attributes
    ----------
    kernel : Kernel or None
        The kernel with its bandwidth; None if the kernel matrix was given.
    ridge : float
        The ridge of the regression of the class indicators.
    cost : float
        The logarithm of the error on left-out rows.
    place : tuple of int
        The position on the grid of bandwidths and ridges.
    """

    kernel: Kernel | None
    ridge: float
    cost: float
    place: tuple[int, int]


class JudgedRows(NamedTuple):
    """The rows that are used for everything except the sums over all rows.

    Attributes
    ----------
    rows : ndarray of int
        Their indices in ascending order: a random draw, and further rows of each class that is rare in it.
    drawn : ndarray of int or None
        The positions in `rows` of the random draw, from which landmarks and the median distance are taken; None if no
        rows were added to it.
    """

    rows: np.ndarray
    drawn: np.ndarray | None


class Freedom(NamedTuple):
    """Whether a search may choose the bandwidth, and the given ridge, which is None if the search may choose it."""

    bandwidth: bool
    ridge: float | None

    @property
    def is_none(self) -> bool:
        return not self.bandwidth and self.ridge is not None


def is_free(kernel: Kernel) -> bool:
    """Return whether the kernel has at least one bandwidth, and all of its bandwidths are still "median"."""
    leaves = [leaf for leaf in kernel.leaves() if isinstance(leaf, BandwidthKernel)]
    return bool(leaves) and all(leaf.bandwidth == "median" for leaf in leaves)  # type: ignore[attr-defined]


def ridge_of_cutoff(cutoff: float, diagonal: float, regularizer: str) -> float:
    """Return the ridge that suppresses the eigenvalues of K below `cutoff` times the mean of its diagonal.

    The ridge equals this threshold for R = K, and its square for R = I.
    """
    return (cutoff * (diagonal or 1.0)) ** (1 if regularizer == "rkhs" else 2)


def ridges_tried(kernel: Kernel, X: np.ndarray, regularizer: str) -> list[float]:
    """Return the ridges that are compared on landmarks; one pass over the rows is enough for all of them."""
    diagonal = float(np.mean(kernel.diagonal(X)))
    low, high = 2 * math.log10(SMALLEST_CUTOFF[regularizer]), 2 * math.log10(LARGEST_CUTOFF)
    cutoffs = [10.0 ** (p / 2) for p in range(round(low), round(high) + 1)]
    return [ridge_of_cutoff(cutoff, diagonal, regularizer) for cutoff in cutoffs]


def ridges_that_keep(basis: LandmarkBasis, ridges: list[float], n_components: int) -> list[float]:
    """Return the ridges for which all components, up to c - 1, separate classes; if there are none, the smallest ridge.

    With a larger ridge, the ratio of such a component falls below 1, and a principal component takes its place.
    """
    wanted = min(n_components, len(basis.counts) - 1)
    return [r for r in ridges if n_class_components(basis, r) >= wanted] or [min(ridges)]


def factor_at(step: int) -> float:
    """Return the multiple of the median distance at a step of the search."""
    return FIRST_BANDWIDTH * BANDWIDTH_STEP ** (step / 2)


def cutoff_at(step: int) -> float:
    """Return the cut-off at a step of the search."""
    return FIRST_CUTOFF * CUTOFF_STEP ** (step / 2)


def left_out_errors(K: Tensor, groups: Groups, ridge: float, regularizer: str, center: bool) -> Tensor:
    """Return the squared leave-one-out error of the class indicators at each row, summed over the classes.

    The errors are those of the ridge regression with the smoother of the discriminant. If the features are centered, K
    is double-centered and the regression has an intercept.
    """
    Y = torch.nn.functional.one_hot(groups.of_row, len(groups.counts)).to(K.dtype)
    residuals = ridge_leave_one_out(smoother_gram(K, regularizer), Y, ridge, intercept=center).residuals
    return residuals.square().sum(dim=1)


def discriminant_ridge(K: Tensor, groups: Groups, ridge: float, regularizer: str, n_components: int) -> float:
    """Return the ridge of (13) whose components are no smoother than the regression of the indicators with `ridge`.

    A component with ratio mu regresses its class means with the ridge mu / (mu - 1) lambda (`directions.py`). For this
    to equal `ridge`, lambda must be `ridge` times s = 1 - 1/mu. This s is an eigenvalue of J^T H J: the squared
    correlation between the class scores of the component and their regression. If lambda is too large, a direction is
    lost: its ratio falls below 1 and a principal component takes its place. The smallest s of the requested components
    is therefore used, but no less than a tenth.
    """
    J = groups.indicators()
    smoothed = J - ridge * cholesky(smoother_gram(K, regularizer), shift=ridge).solve(J)
    correlations = torch.linalg.eigvalsh(J.T @ smoothed).flip(0)
    return ridge * min(1.0, max(LEAST_CORRELATION, float(correlations[n_components - 1])))


def left_out_log_loss(found: Discriminants, groups: Groups) -> float:
    """Return the mean log loss of the classes of left-out rows; infinite if there are no components.

    A row that is the only one of its class does not count: without it, the class could not be predicted.
    """
    of_row = groups.of_row.cpu().numpy()
    judges = np.flatnonzero(groups.counts.cpu().numpy()[of_row] > 1)
    if found.left_out.shape[1] == 0 or not len(judges):
        return math.inf
    shares = groups.counts.cpu().numpy() / len(of_row)
    values = left_out_or_own(found, groups).cpu().numpy()
    return gaussian_classes(values, of_row, shares, np.ones(len(shares)), judges).log_loss


def part_of(groups: Groups, rows: np.ndarray) -> Groups:
    """Return the classes of some rows, numbered anew, since a class without rows among them would have no mean."""
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
    """Find the bandwidth and the ridge with the smallest error on left-out rows, by local search on a grid.

    Parameters
    ----------
    matrices : callable
        Returns the kernel matrix for a factor that multiplies the bandwidth.
    error : callable
        Returns the error for a kernel matrix and a ridge.
    diagonal : float
        The mean of the diagonal of the kernel matrix.
    regularizer : {"identity", "rkhs"}
    freedom : Freedom
    start : tuple of int, default=(0, 0)
        The position on the grid where the search starts.
    fine : bool, default=True
        Whether to end with smaller steps.

    Returns
    -------
    scales : Scales
    cost : float
        The logarithm of the error, see `relative`.
    place : tuple of int
        The position on the grid.

    Notes
    -----
    About fifteen errors are computed, and half as many without the fine steps. Consecutive errors for the same
    bandwidth share one kernel matrix.
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
    """Return the kernel and the ridge with the smallest error on left-out rows.

    Parameters
    ----------
    kernel : Kernel or None
        The kernel, with numbers for its bandwidths.
    x : tensor of shape (n, d)
        The rows, or the kernel matrix itself if the kernel is None.
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
    """Return log(loss + 1e-3) for a loss or an error, so that gains are relative and tiny losses count as equal."""
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
    """Return the kernel with the best bandwidth for functions of landmarks, where each bandwidth has its best ridge.

    The search uses at most 500 of the landmarks and 4000 of the rows. It uses landmarks because the best bandwidth for
    functions of few landmarks is larger than that for functions of all rows.
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
        ridges = ridges_that_keep(basis, ridges_tried(kernel, few, regularizer), wanted)
        tried = seen.discriminants(basis, part, ridges, wanted)
        return relative(min(left_out_log_loss(found, part) for found in tried))

    def is_allowed(place: tuple[int, int]) -> bool:
        return place[1] == 0 and BANDWIDTHS[0] <= factor_at(place[0]) <= BANDWIDTHS[1]

    best, _ = climb(cost, is_allowed, smallest_gain=SMALLEST_GAIN, fine=True)
    return rescaled(best)


def judged_rows(groups: Groups, most: int, random: np.random.RandomState) -> JudgedRows:
    """Return all rows, or `most` of them drawn at random, with further rows of the classes that are rare among them."""
    n = len(groups.of_row)
    drawn = drawn_rows(n, most, random)
    if len(drawn) == n:
        return JudgedRows(drawn, None)
    rows = np.union1d(drawn, some_of_rare_classes(groups.of_row.cpu().numpy(), len(groups.counts), drawn))
    return JudgedRows(rows, np.searchsorted(rows, drawn) if len(rows) > len(drawn) else None)
