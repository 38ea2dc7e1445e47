"""Kernels that are functions of the inner product s = x^T M z of two rows: polynomial and linear."""

from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mercer.blocks import as_tensor
from mercer.checks import check_count, check_number
from mercer.exceptions import invalid_parameter
from mercer.kernels.base import GradientTerm, Kernel, LeafKernel
from mercer.linalg import squared_norms
from mercer.mahalanobis import Mahalanobis, check_metric


class ProductRows(NamedTuple):
    """Rows in the coordinates x L of a metric M = L L^T."""

    metric: Mahalanobis
    rows: Tensor


class InnerProductKernel(LeafKernel):
    """A kernel k(x, z) = phi(s) with s = x^T M z; a subclass defines `profile` (phi) and `slope` (phi')."""

    @abstractmethod
    def profile(self, s: Tensor) -> Tensor:
        """Return phi(s)."""

    @abstractmethod
    def slope(self, s: Tensor) -> Tensor:
        """Return phi'(s), the derivative of phi with respect to s."""

    def prepare(self, X: Tensor, beside: ProductRows | None = None) -> ProductRows:
        metric = check_metric(self.metric) if beside is None else beside.metric
        return ProductRows(metric, metric.project(X))

    def values(self, x: ProductRows, z: ProductRows, scratch: Tensor | None = None) -> Tensor:
        return self.profile(torch.mm(x.rows, z.rows.T, out=scratch))

    def prepared_diagonal(self, x: ProductRows) -> Tensor:
        return self.profile(squared_norms(x.rows))

    def gradient_terms(self, x: ProductRows, z: ProductRows) -> list[GradientTerm]:
        return [GradientTerm(z.metric, self.slope(x.rows @ z.rows.T), None, x.rows, z.rows)]


class Polynomial(InnerProductKernel):
    """The polynomial kernel k(x, z) = (scale s + offset)^degree with s = x^T M z.

    With the default parameters it is the quadratic kernel (x^T z)^2.

    Parameters
    ----------
    degree : int, default=2
    offset : float, default=0.0
        A number at least 0. With a negative one the kernel would not be positive semi-definite.
    scale : float, default=1.0
        A number above 0.
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        The matrix M; a vector is the diagonal of M. None is the identity.
    """

    def __init__(self, degree: int = 2, offset: float = 0.0, scale: float = 1.0, metric: Any = None) -> None:
        self.degree = degree
        self.offset = offset
        self.scale = scale
        self.metric = metric

    def _base(self, s: Tensor) -> Tensor:
        scale = check_number("scale", self.scale, above=0.0)
        return scale * s + check_number("offset", self.offset, at_least=0.0)

    def profile(self, s: Tensor) -> Tensor:
        return self._base(s) ** check_count("degree", self.degree)

    def slope(self, s: Tensor) -> Tensor:
        degree = check_count("degree", self.degree)
        return degree * self.scale * self._base(s) ** (degree - 1)


class Linear(InnerProductKernel):
    """The linear kernel k(x, z) = x^T M z + offset.

    Parameters
    ----------
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        The matrix M; a vector is the diagonal of M. None is the identity.
    offset : float or "mean", default=0.0
        A number at least 0, the prior variance of an intercept. "mean" becomes the mean of x^T M x over the rows in
        `fit`, so that the intercept can vary as much as the linear function does.
    """

    def __init__(self, metric: Any = None, offset: float | str = 0.0) -> None:
        self.metric = metric
        self.offset = offset

    def resolved(self, X: Any, random_state: Any = None) -> Kernel:
        if self.offset != "mean":
            return self.with_params(offset=self._constant())
        rows = check_metric(self.metric).project(as_tensor(X).to(torch.float64))
        return self.with_params(offset=float(squared_norms(rows).mean()))

    def _constant(self) -> float:
        if isinstance(self.offset, str) and self.offset == "mean":
            raise invalid_parameter(
                "offset",
                self.offset,
                "a number before the kernel is evaluated",
                "kernel.resolved(X) puts in the mean of X; estimators do so in fit.",
            )
        if isinstance(self.offset, str):
            raise invalid_parameter("offset", self.offset, "a finite number at least 0, or 'mean'")
        return check_number("offset", self.offset, at_least=0.0)

    def profile(self, s: Tensor) -> Tensor:
        constant = self._constant()
        return s + constant if constant else s

    def slope(self, s: Tensor) -> Tensor:
        return s.new_ones(s.shape)
