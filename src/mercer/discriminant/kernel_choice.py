"""Which kernel a discriminant of all rows takes, and under which metric, by errors of rows left out."""

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

# What kernel="auto" chooses from, and what metric="auto" compares to the metric of the start.
AUTO_KERNELS = ("gaussian", "laplace", "matern32")
LEARNED_METRICS = ("diagonal", "full")
# All kernels are compared on at most so many rows, where a climb costs an eighth of what it does on the rows of the
# search. The second is clearly worse if its mean error is larger by so many standard errors.
MOST_COMPARED, CLEARLY_WORSE = 500, 2.0
# Steps from gradients to a metric and back, as many as recursive feature machines on tables take. A learned metric is
# taken by "auto" if its mean error is smaller by so many standard errors.
METRIC_STEPS, CLEARLY_BETTER = 2, 1.0
# A full metric has d^2 numbers: beyond so many columns the rows of a search are too few to learn them, and "auto" does
# not try. On 1000 digits of 784 pixels it was chosen by rows left out, and lost .007 of accuracy once rows were 2000.
MOST_FULL_COLUMNS = 100


class Entry(NamedTuple):
    """A kernel, a place on the grid of bandwidths and ridges, and the errors of rows left out there."""

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
    """Return the best kernel and ridge for functions of all rows, searched on some `rows` of them.

    A ridge means the same on all rows as on a part of them, where it cuts the same eigenvalues of the kernel operator.

    Parameters
    ----------
    kernels : sequence of Kernel, or of None alone
        Those to choose from, with numbers for their bandwidths. X is the kernel matrix itself if the kernel is None.
    metric : {"identity", "diagonal", "full", "auto"}
        How the metric of the best of them is learned; the identity keeps its own.
    X : ndarray of shape (n, d)
    groups : Groups
        The classes of its rows.
    rows : ndarray of int
    n_components : int
    regularizer : {"identity", "rkhs"}
    center : bool
    freedom : Freedom
    random : RandomState
        Draws the rows that metrics are judged on.
    """
    part = part_of(groups, rows)
    given = X[np.ix_(rows, rows)] if kernels[0] is None else X[rows]
    x = as_tensor(given, dtype=torch.float64, device=groups.counts.device)
    wanted = min(n_components, len(part.counts) - 1)
    if wanted == 0:  # the draw has one class alone
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
    """Return the kernel with the smallest error of rows left out, and where the climb to its bandwidth may begin.

    All are compared on a part of the rows, by large steps of the climb. If the second is not clearly worse than the
    best, the two are compared on all rows, from where the first climbs have ended.
    """

    def compared(entries: Sequence[Entry], rows: np.ndarray) -> list[Entry]:
        """Return kernels with their places and errors, the best on some rows first."""
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
    """Return a choice with a metric by average gradient outer products, itself chosen on rows that had no part in it.

    The regression of the class indicators says along which inputs the classes change; the outer product of its
    gradients is the metric (a step of a recursive feature machine), under which bandwidth and ridge are tuned anew,
    twice. "auto" learns each metric without the `judges`, and compares the errors of these, each of them left out of a
    fit of all rows, to those under the metric of the start. The best is learned again on all rows if it is clearly
    better than that.

    Parameters
    ----------
    begun : Choice
        Under the metric of the start, tuned on these rows.
    kernel : Kernel
        That of `begun`.
    metric : {"diagonal", "full", "auto"}
    x, groups, regularizer, center, freedom
        As for `tuned`.
    judges : ndarray of int, optional
        Which rows judge; needed for "auto".
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
    """Return by how many standard errors of the difference, row by row, the mean of errors is above that of others."""
    apart = errors - others
    return float(apart.mean() / max(apart.std() / math.sqrt(len(apart)), np.finfo(np.float64).tiny))


def gradients_metric(
    kernel: Kernel, ridge: float, metric: str, x: Tensor, groups: Groups, regularizer: str, center: bool
) -> Kernel:
    """Return the kernel under the average gradient outer product of its regression of the class indicators."""
    K = gram_of(kernel, x, center)
    Y = torch.nn.functional.one_hot(groups.of_row, len(groups.counts)).to(K.dtype)
    alpha = cholesky(smoother_gram(K, regularizer), shift=ridge, warn=False).solve(centered(Y) if center else Y)
    alpha = alpha if regularizer == "rkhs" else K @ alpha
    # A function of centered features is one of the kernel itself with centered coefficients, up to a constant.
    return kernel.with_metric(next_metric(kernel, x, x, centered(alpha) if center else alpha, metric))


def gram_of(kernel: Kernel | None, x: Tensor, center: bool) -> Tensor:
    """Return the kernel matrix of rows, or x itself if it is the matrix; double-centered if features are centered."""
    K = x if kernel is None else kernel.matrix(x)
    return double_centered(K) if center else K
