"""The metrics of a setting, learned on some rows: gradient outer products in steps, or length scales by evidence."""

import math
from collections.abc import Callable

import numpy as np
from torch import Tensor

from mercer.kernels import BandwidthKernel, Kernel
from mercer.linalg.cholesky import cholesky
from mercer.mahalanobis import Mahalanobis
from mercer.tabular_models.evidence import maximize_evidence
from mercer.tabular_models.recursion import next_metric
from mercer.tabular_models.table import Table
from mercer.tabular_models.tuning import FREE, Freedom, Iterate

# Rows on which the evidence of a length scale a column is followed, and its steps.
ARD_ROWS, ARD_STEPS = 400, 15


def coefficients(kernel: Kernel, ridge: float, Z: Tensor, table: Table) -> Tensor:
    """Return alpha = (K + ridge W^-1)^-1 y alone: an iterate that is only passed through needs no errors."""
    A = kernel.matrix(Z)
    A.diagonal().add_(ridge if table.weights is None else ridge / table.weights)
    return cholesky(A, warn=False).solve(table.y)


def advanced(iterate: Iterate, table: Table, Z: Tensor, metric: str) -> Kernel:
    """Return the kernel of the next step: with the gradients' outer product of the fit as its metric (section 2.3)."""
    alpha = coefficients(iterate.kernel, iterate.ridge, Z, table)
    return iterate.kernel.with_metric(next_metric(iterate.kernel, Z, Z, alpha, metric, table.weights))


def with_length_scales(
    iterate: Iterate,
    table: Table,
    Z: Tensor,
    *,
    noise_floor: float,
    freedom: Freedom = FREE,
    rows: int = ARD_ROWS,
    steps: int = ARD_STEPS,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Iterate:
    """Return the kernel with a length scale a column, and the noise, of the largest evidence on the first rows.

    The size of the length scales goes to the bandwidth, so that the metric has trace d; a bandwidth or a ridge that may
    not change stays. The cost of the result is minus the mean log evidence. Where `out_of_time` says so, the steps end.
    """
    if len(table) > rows:
        table, Z = table.take(np.arange(rows)), Z[:rows]
    kernel, d = iterate.kernel, Z.shape[1]
    given = kernel.single_metric().factor
    weights = np.ones(d) if given is None else kernel.single_metric().matrix(d).diagonal()
    start = -0.5 * np.log(np.maximum(weights, 1e-8))
    found = maximize_evidence(
        kernel,
        Z,
        table.y,
        start,
        math.log(iterate.ridge),
        weights=table.weights,
        repeats=table.repeats,
        noise_floor=noise_floor,
        max_iter=steps,
        noise_is_free=freedom.ridge,
        out_of_time=out_of_time,
    )
    learned = scaled_columns(kernel, found.log_scales, d)
    if not freedom.bandwidth:
        learned = kernel.with_metric(learned.single_metric())
    return Iterate(learned, math.exp(found.log_noise) if freedom.ridge else iterate.ridge, found.value)


def scaled_columns(kernel: Kernel, log_scales: np.ndarray, d: int) -> Kernel:
    """Return the kernel with a length scale a column as its metric, of trace d if its bandwidth can take the size."""
    metric = Mahalanobis(np.exp(-np.broadcast_to(log_scales, (d,))))
    if not all(isinstance(leaf, BandwidthKernel) for leaf in kernel.leaves()):
        return kernel.with_metric(metric)
    size = float(np.sqrt(d / np.sum(np.asarray(metric.factor) ** 2)))
    return kernel.with_metric(metric.normalized()).rescaled(size)


def relearned(
    plan: list[Iterate],
    metric: str,
    table: Table,
    Z: Tensor,
    noise_floor: float,
    freedom: Freedom = FREE,
    out_of_time: Callable[[], bool] = lambda: False,
) -> list[Iterate]:
    """Return the iterates of a plan with their metrics learned anew on these rows; bandwidths and ridges stay.

    Nothing of the plan's metrics is used, so that rows which are not in this table have had no part in the result.
    """
    iterates = [plan[0]]
    for planned in plan[1:]:
        if metric == "ard":
            found = with_length_scales(
                iterates[-1], table, Z, noise_floor=noise_floor, freedom=freedom, out_of_time=out_of_time
            )
            iterates.append(found)
        else:
            kernel = advanced(iterates[-1], table, Z, metric)
            iterates.append(Iterate(planned.kernel.with_metric(kernel.single_metric()), planned.ridge))
    return iterates
