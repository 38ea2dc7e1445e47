"""Learning the metric of a setting: average gradient outer products in several steps, or length scales by evidence."""

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

# Number of rows on which the evidence is maximized over one length scale for each column, and the number of steps.
ARD_ROWS, ARD_STEPS = 400, 15


def coefficients(kernel: Kernel, ridge: float, Z: Tensor, table: Table) -> Tensor:
    """Return alpha = (K + ridge W^-1)^-1 y, without the leave-one-out errors, which intermediate steps do not need."""
    A = kernel.matrix(Z)
    A.diagonal().add_(ridge if table.weights is None else ridge / table.weights)
    return cholesky(A, warn=False).solve(table.y)


def advanced(iterate: Iterate, table: Table, Z: Tensor, metric: str) -> Kernel:
    """Return the kernel of the next step; its metric is the average gradient outer product of the fit (section 2.3)."""
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
    """Return the length scales of the columns and the noise that maximize the evidence on the first `rows` rows.

    The metric is normalized to trace d, and the bandwidth takes its size. A bandwidth or a ridge that is not free stays
    fixed. The cost of the result is minus the mean log evidence. The steps end once `out_of_time` returns True.
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
    """Return the kernel with one length scale for each column; the metric has trace d if the kernel has a bandwidth."""
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
    """Return the iterates of a plan with metrics learned again on these rows, with the same bandwidths and ridges.

    The metrics of the plan are not used, so the new metrics do not depend on rows that are not in this table.
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
