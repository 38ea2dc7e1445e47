"""Inner-product kernels, k(x, z) = phi(s) with s = x^T M z: polynomial and linear."""

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from mercer.checks import check_count, check_number
from mercer.kernels.base import GradientTerm, LeafKernel
from mercer.linalg import squared_norms
from mercer.mahalanobis import check_metric


class InnerProductKernel(LeafKernel):
    """k(x, z) = phi(s), s = x^T M z; a subclass states `profile` (phi) and `slope` (phi')."""

    @abstractmethod
    def profile(self, s: Tensor) -> Tensor:
        """Return phi(s)."""

    @abstractmethod
    def slope(self, s: Tensor) -> Tensor:
        """Return phi'(s)."""

    def prepare(self, X: Tensor, beside: Tensor | None = None) -> Tensor:
        return check_metric(self.metric).project(X)

    def values(self, x: Tensor, z: Tensor, scratch: Tensor | None = None) -> Tensor:
        return self.profile(torch.mm(x, z.T, out=scratch))

    def prepared_diagonal(self, x: Tensor) -> Tensor:
        return self.profile(squared_norms(x))

    def gradient_terms(self, x: Tensor, z: Tensor) -> list[GradientTerm]:
        return [GradientTerm(check_metric(self.metric), self.slope(x @ z.T), None, x, z)]


class Polynomial(InnerProductKernel):
    """k(x, z) = (scale s + offset)^degree, s = x^T M z; the default is the quadratic kernel (x^T z)^2.

    Parameters
    ----------
    degree : int, default=2
    offset : float, default=0.0
        Not negative, or the kernel would not be positive semi-definite.
    scale : float, default=1.0
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        None is the identity.
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
    """k(x, z) = x^T M z.

    Parameters
    ----------
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        None is the identity.
    """

    def __init__(self, metric: Any = None) -> None:
        self.metric = metric

    def profile(self, s: Tensor) -> Tensor:
        return s

    def slope(self, s: Tensor) -> Tensor:
        return s.new_ones(s.shape)
