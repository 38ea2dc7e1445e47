"""Radial kernels, k(x, z) = phi(r^2) with r the distance of two rows: the base class, and the "median" bandwidth."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from mercer.checks import check_number
from mercer.exceptions import DataWarning, invalid_parameter, warn_user
from mercer.kernels.base import GradientTerm, Kernel, LeafKernel, rows_as_tensor
from mercer.linalg import threads_for
from mercer.mahalanobis import Mahalanobis, ProjectedRows, check_metric

# Number of rows from which the median distance is computed. It is within a few percent of the median among all rows.
MEDIAN_ROWS = 1000


def median_distance(X: Any, metric: Mahalanobis, random_state: Any = None, *, order: int = 2) -> float:
    """Return the median distance between distinct rows, among at most 1000 rows drawn at random.

    The rows are first mapped to the coordinates of the metric. The distance is Euclidean, or the sum of absolute
    differences if `order` is 1. If no two rows differ under the metric, the result is 1, with a DataWarning.
    """
    X = rows_as_tensor("X", X) if not hasattr(X, "shape") else X
    if X.shape[0] > MEDIAN_ROWS:
        chosen = check_random_state(random_state).choice(X.shape[0], MEDIAN_ROWS, replace=False)
        X = X[np.sort(chosen)]
    with threads_for(X.shape[0]):
        x = metric.prepare(rows_as_tensor("X", X).to(torch.float64))
        squares = metric.squared_distances(x, x) if order == 2 else torch.cdist(x.rows, x.rows, p=1).square_()
    above = np.triu_indices(len(x.rows), 1)
    r2 = squares.cpu().numpy()[above]
    r2 = r2[r2 > 0]
    if not len(r2):
        warn_user(
            "bandwidth='median' needs two rows that differ, and all are equal: the bandwidth is set to 1.",
            DataWarning,
        )
        return 1.0
    return float(np.median(np.sqrt(r2)))


class BandwidthKernel(LeafKernel):
    """A kernel of the difference of two rows, with a metric and with a bandwidth by which differences are divided."""

    # The distance whose median is the bandwidth "median": 2 is Euclidean, 1 is the sum of absolute differences.
    _order = 2

    def __init__(self, bandwidth: float | str = "median", metric: Any = None) -> None:
        self.bandwidth = bandwidth
        self.metric = metric

    def scale(self) -> float:
        """Return the bandwidth as a number; an error explains why if it is not a valid one."""
        if isinstance(self.bandwidth, str) and self.bandwidth == "median":
            raise invalid_parameter(
                "bandwidth",
                self.bandwidth,
                "a number before the kernel is evaluated",
                "kernel.resolved(X) puts in the median distance of X; estimators do so in fit.",
            )
        if isinstance(self.bandwidth, str):
            raise invalid_parameter("bandwidth", self.bandwidth, "a finite number above 0, or 'median'")
        return check_number("bandwidth", self.bandwidth, above=0.0)

    def resolved(self, X: Any, random_state: Any = None) -> Kernel:
        if self.bandwidth != "median":
            self.scale()
            return self.with_params()
        median = median_distance(X, check_metric(self.metric), random_state, order=self._order)
        return self.with_params(bandwidth=median)

    def rescaled(self, factor: float) -> Kernel:
        return self.with_params(bandwidth=self.scale() * factor)

    def prepare(self, X: Tensor, beside: ProjectedRows | None = None) -> ProjectedRows:
        metric = check_metric(self.metric) if beside is None else beside.metric
        return metric.prepare(X, beside)


class RadialKernel(BandwidthKernel):
    """A kernel k(x, z) = phi(r^2), where r = |x - z|_M is the distance under the metric.

    A subclass defines `profile` (phi) and `slope` (phi'). Both may overwrite their argument.
    """

    # The expansion |x|^2 - 2 x^T z + |z|^2 loses the digits of small distances. Kernels of r, not r^2, need these.
    exact_small_distances = True

    @abstractmethod
    def profile(self, r2: Tensor) -> Tensor:
        """Return phi(r^2)."""

    @abstractmethod
    def slope(self, r2: Tensor) -> Tensor:
        """Return phi'(r^2), the derivative with respect to r^2, or zero at r = 0 if there is no derivative there."""

    def _squared_distances(self, x: ProjectedRows, z: ProjectedRows, out: Tensor | None = None) -> Tensor:
        return z.metric.squared_distances(x, z, exact_small=self.exact_small_distances, out=out)

    def values(self, x: ProjectedRows, z: ProjectedRows, scratch: Tensor | None = None) -> Tensor:
        return self.profile(self._squared_distances(x, z, scratch))

    def matrices(self, X: Tensor) -> Callable[[float], Tensor]:
        """Return the function factor -> `rescaled(factor).matrix(X)`. Distances are computed once for all factors."""
        x = self.prepare(X)
        r2 = self._squared_distances(x, x)
        r2.diagonal().zero_()
        return lambda factor: self.rescaled(factor).profile(r2.clone())

    def prepared_diagonal(self, x: ProjectedRows) -> Tensor:
        return self.profile(torch.zeros_like(x.norms))

    def gradient_terms(self, x: ProjectedRows, z: ProjectedRows) -> list[GradientTerm]:
        P = self.slope(self._squared_distances(x, z)).mul_(-2.0)
        return [GradientTerm(z.metric, P, P, x.rows, z.rows)]

    def values_and_terms(self, x: ProjectedRows, z: ProjectedRows) -> tuple[Tensor, list[GradientTerm]]:
        r2 = self._squared_distances(x, z)
        K = self.profile(r2.clone())
        P = self.slope_beside(r2, K).mul_(-2.0)
        return K, [GradientTerm(z.metric, P, P, x.rows, z.rows)]

    def slope_beside(self, r2: Tensor, K: Tensor) -> Tensor:
        """Return phi'(r^2) in a new array, given the values K = phi(r^2), which some kernels can use."""
        return self.slope(r2)


def root(r2: Tensor) -> Tensor:
    """Return sqrt(r2). When torch differentiates it, the derivative at 0 is 0 instead of infinity.

    If r2 does not require a gradient, it is overwritten.
    """
    if not r2.requires_grad:
        return r2.sqrt_()
    positive = r2 > 0
    return torch.where(positive, torch.where(positive, r2, 1.0).sqrt(), 0.0)
