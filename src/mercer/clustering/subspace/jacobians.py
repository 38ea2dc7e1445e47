"""Jacobians of the kernel values k(x, x_1), ..., k(x, x_n) at each point, summed without forming them if possible."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor

from mercer.agop import predictor_gradients
from mercer.blocks import WORKING_MEMORY, rows_per_block
from mercer.kernels import Kernel


class Jacobians(ABC):
    """The Jacobians G_i of shape (n, d), one for each point: row j is the derivative of k(x, x_j) by x, at x = x_i."""

    @abstractmethod
    def outer_products(self, A: Tensor) -> Tensor:
        """Return sum_i G_i^T A G_i, of shape (d, d), for a symmetric A of shape (n, n)."""

    @abstractmethod
    def along(self, B: Tensor) -> Tensor:
        """Return G_i^T b_i for each column b_i of B, as the rows of a matrix of shape (n, d)."""


def jacobians(kernel: Kernel, X: Tensor) -> Jacobians:
    """Return the Jacobians of a kernel on the rows of X, by its gradient weights if it has one pair of them."""
    return WeightedJacobians(kernel, X) if kernel.has_gradient_weights else HeldJacobians(kernel, X)


class WeightedJacobians(Jacobians):
    """Jacobians by gradient weights: row j of G_i is M (P_ij x_j - Q_ij x_i).

    All sums are products of (n, n) matrices, in O(n^3 + n^2 d) time.
    """

    def __init__(self, kernel: Kernel, X: Tensor) -> None:
        self.P, self.Q = kernel.gradient_weights(X)
        self.X, self.metric = X, kernel.single_metric()
        self.is_radial = torch.equal(self.P, self.Q)
        self.has_pushes = bool(self.Q.any())

    def outer_products(self, A: Tensor) -> Tensor:
        # The sum is sum_ijl A_jl (P_ij x_j - Q_ij x_i) (P_il x_l - Q_il x_i)^T, with M applied on both sides.
        S = A * (self.P.T @ self.P)
        if self.has_pushes:
            QA = self.Q @ A
            T = self.P * QA
            S = S - T - T.T
            S.diagonal().add_((T if self.is_radial else self.Q * QA).sum(dim=1))
        total = self.metric.pull_back(self.metric.project(self.X.T @ S @ self.X))
        return self.metric.pull_back(self.metric.project(total.T))

    def along(self, B: Tensor) -> Tensor:
        P = self.P * B.T
        G = P @ self.X
        if self.has_pushes:
            Q = P if self.is_radial else self.Q * B.T
            G = G - Q.sum(dim=1)[:, None] * self.X
        return self.metric.pull_back(self.metric.project(G))


class HeldJacobians(Jacobians):
    """Jacobians that are formed for a few points at a time, for kernels without one pair of gradient weights.

    These are kernels whose terms have different metrics, or whose gradient has no closed form.
    """

    def __init__(self, kernel: Kernel, X: Tensor, working_memory: float = WORKING_MEMORY) -> None:
        self.kernel, self.X = kernel, X
        n, d = X.shape
        self.step = rows_per_block(n, 3 * n * d * X.element_size(), working_memory)

    def _blocks(self) -> Iterator[tuple[slice, Tensor]]:
        eye = torch.eye(len(self.X), dtype=self.X.dtype, device=self.X.device)
        for start in range(0, len(self.X), self.step):
            rows = slice(start, start + self.step)
            yield rows, predictor_gradients(self.kernel, self.X[rows], self.X, eye)

    def outer_products(self, A: Tensor) -> Tensor:
        total = self.X.new_zeros((self.X.shape[1], self.X.shape[1]))
        for _, G in self._blocks():
            total += torch.einsum("ija,ijb->ab", torch.matmul(A, G), G)
        return total

    def along(self, B: Tensor) -> Tensor:
        return torch.cat([torch.einsum("ija,ji->ia", G, B[:, rows]) for rows, G in self._blocks()])
