"""A fitted kernel machine on a table: a kernel on warped columns, rows and coefficients; what can be asked of it."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.agop import predictor_gradients
from mercer.blocks import WORKING_MEMORY, as_tensor, walk
from mercer.kernels import Kernel
from mercer.kernels.base import block_numbers
from mercer.landmarks.features import landmark_features
from mercer.linalg import cholesky
from mercer.tabular_models.column_warp import ColumnWarp
from mercer.tabular_models.partition import Partition


@dataclass(frozen=True, eq=False)
class Machine:
    """f(x) = sum_j alpha_j k(w(x_j), w(x)) over the rows x_j in the leaf of x, w the warp of the columns.

    Attributes
    ----------
    kernel : Kernel
        On warped columns, with the learned metric and a number for the bandwidth.
    columns : ColumnWarp
    rows : ndarray of shape (m, d)
        The rows x_j as they came; machines that are averaged share one array.
    alpha : ndarray of shape (m, c)
    ridge : float
        The noise variance relative to the output scale.
    share : float
        Its share where several machines are averaged.
    output_scales : ndarray of shape (c,)
        The variance of the prior, one an output.
    weights : ndarray of shape (m,) or None
        ridge / weight is the noise of a row's target; None where all are 1.
    partition : Partition or None
        Which leaf a row belongs to; None is one leaf for all.
    leaves : ndarray of shape (m,) or None
        The leaf of each of `rows`.
    prior_factor, gained_factor : ndarray of shape (m, m) or None
        With landmarks, the Cholesky factors of K_mm and of K_mm + K_mn W K_nm / ridge, from which variances follow.
        Without landmarks variances follow from the rows, and nothing of the size of the kernel matrix is kept.
    """

    kernel: Kernel
    columns: ColumnWarp
    rows: np.ndarray
    alpha: np.ndarray
    ridge: float
    share: float
    output_scales: np.ndarray
    weights: np.ndarray | None = None
    partition: Partition | None = None
    leaves: np.ndarray | None = None
    prior_factor: np.ndarray | None = None
    gained_factor: np.ndarray | None = None

    def __getstate__(self) -> dict[str, Any]:
        # What is worked out on demand stays behind.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def changed(self, **values: Any) -> "Machine":
        """Return the machine with some fields replaced."""
        return replace(self, **values)

    def mean(self, X: np.ndarray, working_memory: float = WORKING_MEMORY, device: Any = None) -> np.ndarray:
        """Return f at the rows of X, of shape (n, c)."""
        x, alpha = self._warped(X), as_tensor(self.alpha, dtype=torch.float64, device=device)
        values = np.empty((len(X), self.alpha.shape[1]))
        for rows, own in self._by_leaf(X):
            Z = self.basis[own].to(device=device)
            features = landmark_features(self.kernel, x[rows], Z, alpha[own], working_memory=working_memory)
            values[rows] = features.cpu().numpy()
        return values

    def unit_variance(self, X: np.ndarray, working_memory: float = WORKING_MEMORY, device: Any = None) -> np.ndarray:
        """Return the variance of f at the rows of X for an output scale of 1, without the noise of an observation."""
        x, variance = self._warped(X), np.empty(len(X))
        for rows, own in self._by_leaf(X):
            Z, (lower, gained) = self.basis[own].to(device=device), self._factors(own, device)
            prepared, parts = self.kernel.prepare(Z), []
            bytes_per_row = (block_numbers(*Z.shape) + 2 * len(Z)) * Z.element_size()
            for _, (block,) in walk(
                [x[rows]], bytes_per_row=bytes_per_row, working_memory=working_memory, dtype=Z.dtype, device=device
            ):
                prepared_block = self.kernel.prepare(block, beside=prepared)
                K = self.kernel.values(prepared_block, prepared).T
                part = self.kernel.prepared_diagonal(prepared_block) - _squared_solve(lower, K)
                parts.append(part if gained is None else part + _squared_solve(gained, K))
            variance[rows] = torch.cat(parts).clamp_(min=0.0).cpu().numpy()
        return variance

    def unit_covariance(self, X: np.ndarray, device: Any = None) -> np.ndarray:
        """Return the covariance of f between the rows of X for an output scale of 1; 0 between leaves."""
        x, covariance = self._warped(X), np.zeros((len(X), len(X)))
        for rows, own in self._by_leaf(X):
            Z, (lower, gained) = self.basis[own].to(device=device), self._factors(own, device)
            part = as_tensor(x[rows], dtype=Z.dtype, device=device)
            K = self.kernel.matrix(Z, part)
            half = torch.linalg.solve_triangular(lower, K, upper=False)
            block = self.kernel.matrix(part) - half.T @ half
            if gained is not None:
                half = torch.linalg.solve_triangular(gained, K, upper=False)
                block += half.T @ half
            index = np.arange(len(X))[rows]
            covariance[np.ix_(index, index)] = block.cpu().numpy()
        return covariance

    def gradients(self, X: np.ndarray, working_memory: float = WORKING_MEMORY) -> np.ndarray:
        """Return the gradient of f in the units of the columns, of shape (n, c, d)."""
        x, result = self._warped(X), np.empty((len(X), self.alpha.shape[1], X.shape[1]))
        for rows, own in self._by_leaf(X):
            Z, alpha = self.basis[own].numpy(), self.alpha[own]
            result[rows] = predictor_gradients(self.kernel, x[rows], Z, alpha, working_memory=working_memory)
        return result * self.columns.slopes(X)[:, None, :]

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Return what each row x_j adds to f, of shape (n, m, c): 0 for rows of other leaves."""
        x, result = self._warped(X), np.zeros((len(X), *self.alpha.shape))
        for rows, own in self._by_leaf(X):
            K = self.kernel.matrix(x[rows], self.basis[own].numpy())
            index, columns = np.arange(len(X))[rows], np.arange(len(self.rows))[own]
            result[np.ix_(index, columns)] = K[:, :, None] * self.alpha[own]
        return result

    @cached_property
    def basis(self) -> Tensor:
        """The warped rows."""
        return as_tensor(self._warped(self.rows), dtype=torch.float64)

    @cached_property
    def _known_factors(self) -> dict[int, Tensor]:
        return {}

    def _factors(self, own: Any, device: Any) -> tuple[Tensor, Tensor | None]:
        """Return the Cholesky factor of K + ridge W^-1 in a leaf, worked out once; or the two factors of landmarks."""
        if self.prior_factor is not None:
            prior, gained = (as_tensor(part, device=device) for part in (self.prior_factor, self.gained_factor))
            return prior, gained
        leaf = 0 if self.leaves is None else int(self.leaves[own[0]])
        if leaf not in self._known_factors:
            A = self.kernel.matrix(self.basis[own].to(device=device))
            noise = self.ridge if self.weights is None else self.ridge / as_tensor(self.weights[own], device=device)
            A.diagonal().add_(noise)
            self._known_factors[leaf] = cholesky(A).lower
        return self._known_factors[leaf], None

    def _by_leaf(self, X: np.ndarray) -> Iterator[tuple[Any, Any]]:
        """Yield which rows of X share a leaf, and which of the machine's rows are in it."""
        if self.partition is None or self.leaves is None:
            yield slice(None), slice(None)
            return
        asked = self.partition.leaves_of(X)
        for leaf in np.unique(asked):
            yield np.flatnonzero(asked == leaf), np.flatnonzero(self.leaves == leaf)

    def _warped(self, X: np.ndarray) -> np.ndarray:
        return self.columns.transform(X.astype(np.float64, copy=False))


def _squared_solve(lower: Tensor, K: Tensor) -> Tensor:
    """Return |L^-1 k|^2 for each column k of K."""
    return torch.linalg.solve_triangular(lower, K, upper=False).square_().sum(dim=0)
