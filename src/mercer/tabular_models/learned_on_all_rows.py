"""Metrics that are learned on all rows without a search, exactly as in the paper: by gradients or maximum likelihood.

An object of these classes as the `metric` of an estimator replaces the search for kernel, bandwidth and ridge.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.agop import agop
from mercer.checks import check_choice, check_count, check_number
from mercer.exceptions import invalid_parameter
from mercer.kernels import BandwidthKernel, Kernel
from mercer.mahalanobis import Mahalanobis
from mercer.tabular_models.evidence import maximize_evidence
from mercer.tabular_models.finish import solved
from mercer.tabular_models.fitters import SMALLEST_RIDGE, LeftOut
from mercer.tabular_models.learned import Fit, Learned
from mercer.tabular_models.metric_learning import coefficients
from mercer.tabular_models.plans import Plan, history_entry
from mercer.tabular_models.settings import Setting
from mercer.tabular_models.table import Table
from mercer.tabular_models.tuning import Iterate

# The noise at the start of maximum likelihood, relative to the variance of the targets, and the most steps.
FIRST_NOISE, STEPS = 0.1, 50


class LearnedKernel(NamedTuple):
    """The kernel, the ridge and the output scales with which a machine is to be solved.

    Attributes
    ----------
    kernel : Kernel
        The kernel, with its metric and a number for its bandwidth.
    ridge : float
    output_scales : ndarray of shape (c,) or None
        The prior variance of each output; None for those that maximize the evidence.
    """

    kernel: Kernel
    ridge: float
    output_scales: np.ndarray | None = None


def variances(y: Tensor) -> Tensor:
    """Return the variance of each centered target, of shape (c,), or 1 for a constant target."""
    found = y.square().mean(dim=0)
    return torch.where(found > 0, found, torch.ones_like(found))


@dataclass(frozen=True)
class AverageGradients:
    """Learn the metric M by a recursive feature machine on all rows.

    The recursion starts from M = I. Each of `n_iter` steps computes alpha = (K + ridge I)^-1 y, and then
    M = (1/n) sum_i grad f(x_i) grad f(x_i)^T (rfm-and-ard, section 2.3). The bandwidth is constant. M is not
    normalized: its size measures how steep f is, in units of the standard deviation of y.

    Parameters
    ----------
    kind : {"full", "diagonal"}, default="full"
        Whether M is the whole outer product, or its diagonal.
    n_iter : int, default=5
        Number of steps.
    ridge : float, default=1e-08
        The ridge of the fits, in units of k(x, x). Section 2.3 gives no value; the default is the smallest that
        rounding errors allow.
    bandwidth : float or None, default=None
        The bandwidth. None keeps that of the kernel; if that is "median", it is the median distance of the rows under
        M = I, and stays constant.

    Notes
    -----
    O(n^3 + n^2 d) for each step.
    """

    kind: str = "full"
    n_iter: int = 5
    ridge: float = SMALLEST_RIDGE
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("full", "diagonal"))
        check_count("n_iter", self.n_iter, at_least=0)
        check_number("ridge", self.ridge, above=0.0)
        if self.bandwidth is not None:
            check_number("bandwidth", self.bandwidth, above=0.0)

    def learned(self, kernel: Kernel, table: Table, Z: Tensor) -> LearnedKernel:
        """Return the kernel with the metric of the last step, learned from the warped rows Z of a table."""
        kernel = kernel if self.bandwidth is None else kernel.with_params(bandwidth=self.bandwidth)
        kernel, deviations = kernel.resolved(Z, 0), variances(table.y).sqrt()
        is_diagonal = self.kind == "diagonal"
        for _ in range(self.n_iter):
            alpha = coefficients(kernel, self.ridge, Z, table) / deviations
            M = agop(kernel, Z, Z, alpha, diagonal=is_diagonal, weights=table.weights).cpu()
            if not bool(M.any()):  # a constant target has no gradients
                break
            kernel = kernel.with_metric(Mahalanobis.from_weights(M) if is_diagonal else Mahalanobis.from_matrix(M))
        return LearnedKernel(kernel, self.ridge)

    def setting(self) -> tuple[str, int]:
        """Return the kind of metric, and its steps."""
        return self.kind, self.n_iter


@dataclass(frozen=True)
class MaximumLikelihood:
    """Learn the length scales and the noise of a Gaussian process by maximum likelihood.

    Minimizes -log N(y; 0, v (K + noise I)), where v is the variance of the targets. This corresponds to standardized
    targets and a kernel without an output scale (rfm-and-ard, section 2.2). L-BFGS-B starts once, from the median
    distance and a noise of a tenth.

    Parameters
    ----------
    metric : {"identity", "ard"} or AverageGradients, default="identity"
        With "ard" each column has its own length scale, so that M = diag(1 / length^2) and the bandwidth is 1. With an
        `AverageGradients` object, M is learned first and then kept.
    rows : int or None, default=None
        The largest number of rows on which the likelihood is maximized, which are evenly spaced in the table; None uses
        all rows. The machine is solved on all rows in either case.

    Notes
    -----
    O(n^3) for each of about 20 evaluations.
    """

    metric: Any = "identity"
    rows: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.metric, AverageGradients):
            check_choice("metric", self.metric, ("identity", "ard"))
        if self.rows is not None:
            check_count("rows", self.rows)

    def learned(self, kernel: Kernel, table: Table, Z: Tensor) -> LearnedKernel:
        """Return the kernel and the noise that maximize the likelihood, learned from the warped rows Z of a table."""
        scales, fixed = variances(table.y), Mahalanobis()
        if isinstance(self.metric, AverageGradients):
            fixed = self.metric.learned(kernel, table, Z).kernel.single_metric()
        if self.rows is not None and len(table) > self.rows:
            drawn = np.linspace(0, len(table) - 1, self.rows).astype(int)
            table, Z = table.take(drawn), Z[torch.from_numpy(drawn)]
        V = fixed.project(Z)
        plain = kernel.with_params(bandwidth=1.0, metric=None)
        first = math.log(kernel.with_params(bandwidth="median", metric=None).resolved(V, 0).scale())  # type: ignore[attr-defined]
        found = maximize_evidence(
            plain,
            V,
            table.y,
            np.full(Z.shape[1] if self.metric == "ard" else 1, first),
            math.log(FIRST_NOISE),
            weights=table.weights,
            repeats=table.repeats,
            output_scales=scales,
            noise_floor=SMALLEST_RIDGE,
            max_iter=STEPS,
        )
        lengths = np.exp(found.log_scales)
        if self.metric == "ard":
            learned = plain.with_metric(Mahalanobis(1.0 / lengths))
        else:
            learned = plain.with_metric(fixed).rescaled(float(lengths[0]))
        return LearnedKernel(learned, math.exp(found.log_noise), scales.cpu().numpy())

    def setting(self) -> tuple[str, int]:
        """Return the kind of metric, and its steps."""
        return self.metric.setting() if isinstance(self.metric, AverageGradients) else (self.metric, 0)


def check_alone(kernels: list[Kernel], warp: Any, n_landmarks: Any) -> Kernel:
    """Return the kernel; raise if there are several, or if other parameters ask for a search or for landmarks."""
    if len(kernels) > 1:
        raise invalid_parameter("kernel", "auto", "one kernel, if the metric is an object")
    if not isinstance(kernels[0], BandwidthKernel):
        raise invalid_parameter("kernel", kernels[0], "a kernel with a bandwidth, if the metric is an object")
    if isinstance(warp, str) and warp == "auto":
        raise invalid_parameter("warp", warp, "'none', 'log' or 'rank', if the metric is an object")
    if n_landmarks not in (None, "auto"):
        raise invalid_parameter("n_landmarks", n_landmarks, "None or 'auto', if the metric is an object")
    return kernels[0]


def learned_on_all_rows(
    metric: AverageGradients | MaximumLikelihood, kernel: Kernel, warp: Any, table: Table
) -> Learned:
    """Learn the metric and solve one machine, both on all rows of a table.

    The predictions of left-out rows are leave-one-out predictions under the metric that was learned from all rows.
    """
    warp = warp if isinstance(warp, str) else tuple(warp)
    learned = metric.learned(kernel, table, table.warped(warp))
    plan = Plan(Setting(kernel, warp, *metric.setting()), [Iterate(learned.kernel, learned.ridge)])
    machine, spread, evidence = solved(plan.iterates[-1], plan, table, None, variances=True)
    if learned.output_scales is not None:
        machine = machine.changed(output_scales=learned.output_scales)
    y, trend = table.y.cpu().numpy(), table.trend.cpu().numpy()
    mean = y - machine.alpha * spread[:, None]  # type: ignore[index]
    left_out = LeftOut(y, mean, spread, table.mass.cpu().numpy(), trend)  # type: ignore[arg-type]
    everything = np.arange(len(table))
    fit = Fit(machine, everything, left_out, evidence, everything, [])
    return Learned([fit], [history_entry(plan, len(table))], True, [])
