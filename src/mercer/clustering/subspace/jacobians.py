"""Derivatives of the kernel's values with all points, at each point: summed, where possible, without forming them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor

from mercer.agop import predictor_gradients
from mercer.blocks import WORKING_MEMORY, rows_per_block
from mercer.kernels import Kernel


class Jacobians(ABC):
    """G_i of shape (n, d): row j is the derivative of k(x, x_j) in x, at x = x_i."""

    @abstractmethod
    def outer_products(self, A: Tensor) -> Tensor:
        """Return sum_i G_i^T A G_i for a symmetric A of shape (n, n); of shape (d, d)."""

    @abstractmethod
    def along(self, B: Tensor) -> Tensor:
        """Return G_i^T b_i for the columns b_i of B, one row each; of shape (n, d)."""


def jacobians(kernel: Kernel, X: Tensor) -> Jacobians:
    """Return the derivatives of a kernel on the rows of X, by its weights if it has them."""
    return WeightedJacobians(kernel, X) if kernel.has_gradient_weights else HeldJacobians(kernel, X)


class WeightedJacobians(Jacobians):
    """Row j of G_i is M (P_ij x_j - Q_ij x_i), so that all sums are products of (n, n) matrices: O(n^3 + n^2 d)."""

    def __init__(self, kernel: Kernel, X: Tensor) -> None:
        self.P, self.Q = kernel.gradient_weights(X)
        self.X, self.metric = X, kernel.single_metric()
        self.is_radial = torch.equal(self.P, self.Q)
        self.has_pushes = bool(self.Q.any())

    def outer_products(self, A: Tensor) -> Tensor:
        # sum_ijl A_jl (P_ij x_j - Q_ij x_i) (P_il x_l - Q_il x_i)^T
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
    """G_i itself, for a few points at a time: for kernels whose terms have their own metrics, or no closed form."""

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
