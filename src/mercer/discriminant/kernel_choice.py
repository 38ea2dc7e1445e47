"""The choice of the kernel and its metric for a discriminant on all rows, by errors of left-out rows."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.agop import next_metric
from mercer.blocks import as_tensor
from mercer.discriminant.choice import (
    FIRST_CUTOFF,
    STAYS,
    Choice,
    Freedom,
    discriminant_ridge,
    left_out_errors,
    part_of,
    ridge_of_cutoff,
    tuned,
)
from mercer.discriminant.directions import smoother_gram
from mercer.discriminant.groups import Groups, centered, double_centered
from mercer.kernels import Kernel
from mercer.linalg import cholesky

# The kernels that kernel="auto" compares, and the metrics that metric="auto" compares with that of the kernel.
AUTO_KERNELS = ("gaussian", "laplace", "matern32")
LEARNED_METRICS = ("diagonal", "full")
# All kernels are compared on at most MOST_COMPARED rows, where tuning costs an eighth of what it costs on all rows of
# the search. The second kernel is clearly worse if its mean error is larger by CLEARLY_WORSE standard errors.
MOST_COMPARED, CLEARLY_WORSE = 500, 2.0
# Number of steps of the recursion that learns a metric, the same as for recursive feature machines on tables. "auto"
# uses a learned metric if its mean error is smaller by CLEARLY_BETTER standard errors.
METRIC_STEPS, CLEARLY_BETTER = 2, 1.0
# A full metric has d^2 entries. For more columns than this, the rows of a search are too few to learn them, and "auto"
# does not try. On 1000 digits of 784 pixels left-out rows chose it, and with 2000 rows it lost .007 of accuracy.
MOST_FULL_COLUMNS = 100


class Entry(NamedTuple):
    """A kernel, its position on the grid of bandwidths and ridges, and the errors of left-out rows at this position."""

    kernel: Kernel | None
    place: tuple[int, int]
    errors: np.ndarray


def choose_exact(
    kernels: Sequence[Kernel | None],
    metric: str,
    X: np.ndarray,
    groups: Groups,
    rows: np.ndarray,
    n_components: int,
    regularizer: str,
    center: bool,
    freedom: Freedom,
    random: np.random.RandomState,
) -> tuple[Kernel | None, float]:
    """Return the best kernel and ridge for functions of all rows, searched on some of them.

    A ridge means the same on a part of the rows as on all of them: it suppresses the same eigenvalues of the kernel
    operator.

    Parameters
    ----------
    kernels : sequence of Kernel, or [None]
        The kernels to choose from, with numbers for their bandwidths. With [None], X is the kernel matrix.
    metric : {"identity", "diagonal", "full", "auto"}
        How the metric of the best kernel is learned; "identity" keeps the metric of the kernel.
    X : ndarray of shape (n, d)
    groups : Groups
        The classes of the rows of X.
    rows : ndarray of int
        The rows of X on which the search is made.
    n_components : int
    regularizer : {"identity", "rkhs"}
    center : bool
    freedom : Freedom
    random : RandomState
        Draws the rows that metrics are judged on.

    Returns
    -------
    kernel : Kernel or None
    ridge : float
    """
    part = part_of(groups, rows)
    given = X[np.ix_(rows, rows)] if kernels[0] is None else X[rows]
    x = as_tensor(given, dtype=torch.float64, device=groups.counts.device)
    wanted = min(n_components, len(part.counts) - 1)
    if wanted == 0:  # all of these rows have the same class
        ridge = ridge_of_cutoff(FIRST_CUTOFF, 1.0, regularizer) if freedom.ridge is None else freedom.ridge
        return kernels[0], ridge
    options = (regularizer, center, freedom)
    kernel, start = best_kernel(kernels, x, part, *options)
    best = tuned(kernel, x, part, *options, start)
    if best.kernel is not None and metric != "identity":
        judges = random.permutation(len(x))[len(x) // 2 :] if metric == "auto" else None
        best = with_metric(best, best.kernel, metric, x, part, *options, judges)
    ridge = best.ridge
    if freedom.ridge is None:
        ridge = discriminant_ridge(gram_of(best.kernel, x, center), part, ridge, regularizer, wanted)
    return best.kernel, ridge


def best_kernel(
    kernels: Sequence[Kernel | None], x: Tensor, groups: Groups, regularizer: str, center: bool, freedom: Freedom
) -> tuple[Kernel | None, tuple[int, int]]:
    """Return the kernel with the smallest error on left-out rows, and the position where its tuning may start.

    All kernels are tuned with large steps on a part of the rows and compared. If the second kernel is not clearly worse
    than the best, the two are compared again on all rows, starting from the positions that were found.
    """

    def compared(entries: Sequence[Entry], rows: np.ndarray) -> list[Entry]:
        """Return the kernels with their positions and errors on some rows, the best kernel first."""
        part, some = part_of(groups, rows), x[torch.from_numpy(rows).to(x.device)]
        found = []
        for kernel, place, _ in entries:
            choice = tuned(kernel, some, part, regularizer, center, freedom, place, fine=False)
            K = gram_of(choice.kernel, some, center)
            errors = left_out_errors(K, part, choice.ridge, regularizer, center).cpu().numpy()
            found.append(Entry(kernel, choice.place, errors))
        return sorted(found, key=lambda entry: entry.errors.mean())

    begun = [Entry(kernel, (0, 0), np.zeros(0)) for kernel in kernels]
    if len(begun) > 1:
        begun = compared(begun, np.arange(0, len(x), -(-len(x) // MOST_COMPARED)))
        if standard_errors_apart(begun[1].errors, begun[0].errors) < CLEARLY_WORSE:
            begun = compared(begun[:2], np.arange(len(x)))
    return begun[0].kernel, begun[0].place


def with_metric(
    begun: Choice,
    kernel: Kernel,
    metric: str,
    x: Tensor,
    groups: Groups,
    regularizer: str,
    center: bool,
    freedom: Freedom,
    judges: np.ndarray | None = None,
) -> Choice:
    """Return a choice whose metric is learned by average gradient outer products.

    The average outer product of the gradients of the regression of the class indicators is the metric (a step of a
    recursive feature machine). Under it, bandwidth and ridge are tuned again. There are two such steps. "auto" learns
    each metric without the rows `judges`. It compares the leave-one-out errors at these rows, in fits on all rows, with
    those of `begun`. If the best metric is clearly better, it is learned again on all rows; otherwise `begun` is
    returned.

    Parameters
    ----------
    begun : Choice
        The kernel with its own metric, tuned on these rows.
    kernel : Kernel
        The kernel of `begun`.
    metric : {"diagonal", "full", "auto"}
    x, groups, regularizer, center, freedom
        As for `tuned`.
    judges : ndarray of int, optional
        The rows on which metrics are compared; needed for "auto".
    """

    def learned(kind: str, rows: np.ndarray) -> Choice:
        part, some = part_of(groups, rows), x[torch.from_numpy(rows).to(x.device)]
        choice, bandwidth = begun, STAYS if freedom.bandwidth else 0
        for _ in range(METRIC_STEPS):
            start = gradients_metric(choice.kernel or kernel, choice.ridge, kind, some, part, regularizer, center)
            choice = tuned(start, some, part, regularizer, center, freedom, (bandwidth, choice.place[1]))
        return choice

    def errors_of(choice: Choice) -> np.ndarray:
        K = gram_of(choice.kernel, x, center)
        return left_out_errors(K, groups, choice.ridge, regularizer, center).cpu().numpy()[judges]

    everything = np.arange(len(x))
    if judges is not None:
        others = np.setdiff1d(everything, judges)
        if len(part_of(groups, others).counts) < 2:
            return begun
        kinds = [kind for kind in LEARNED_METRICS if kind != "full" or x.shape[1] <= MOST_FULL_COLUMNS]
        errors = {kind: errors_of(learned(kind, others)) for kind in kinds}
        metric = min(errors, key=lambda kind: float(errors[kind].mean()))
        if standard_errors_apart(errors_of(begun), errors[metric]) < CLEARLY_BETTER:
            return begun
    return learned(metric, everything)


def standard_errors_apart(errors: np.ndarray, others: np.ndarray) -> float:
    """Return the mean of the paired differences of two sets of errors, divided by its standard error."""
    apart = errors - others
    return float(apart.mean() / max(apart.std() / math.sqrt(len(apart)), np.finfo(np.float64).tiny))


def gradients_metric(
    kernel: Kernel, ridge: float, metric: str, x: Tensor, groups: Groups, regularizer: str, center: bool
) -> Kernel:
    """Return the kernel with the average gradient outer product of its regression of the class indicators as metric."""
    K = gram_of(kernel, x, center)
    Y = torch.nn.functional.one_hot(groups.of_row, len(groups.counts)).to(K.dtype)
    alpha = cholesky(smoother_gram(K, regularizer), shift=ridge, warn=False).solve(centered(Y) if center else Y)
    alpha = alpha if regularizer == "rkhs" else K @ alpha
    # A function of centered features is, up to a constant, a function of the kernel itself with centered coefficients.
    return kernel.with_metric(next_metric(kernel, x, x, centered(alpha) if center else alpha, metric))


def gram_of(kernel: Kernel | None, x: Tensor, center: bool) -> Tensor:
    """Return the kernel matrix of the rows x, or x itself if the kernel is None; double-centered if `center`."""
    K = x if kernel is None else kernel.matrix(x)
    return double_centered(K) if center else K
