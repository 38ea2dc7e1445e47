"""A fitted kernel machine on a table, with its means, variances, covariances and gradients at new rows."""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from mercer.agop import predictor_gradients
from mercer.blocks import WORKING_MEMORY, as_tensor, walk
from mercer.kernels import Kernel
from mercer.kernels.base import block_numbers
from mercer.landmarks.features import landmark_features
from mercer.linalg import cholesky, threads_for
from mercer.tabular_models.column_warp import ColumnWarp
from mercer.tabular_models.kept import Kept
from mercer.tabular_models.partition import Partition

Method = TypeVar("Method", bound=Callable[..., Any])
Factors = tuple[Tensor, Tensor | None]


def with_threads_for_its_rows(method: Method) -> Method:
    """Decorate a method of a machine so that it uses one thread if the kernel matrices of the rows X are small.

    A kernel matrix of n rows and m rows of the machine takes as much work as a square one of sqrt(n m) rows.
    """

    @functools.wraps(method)
    def sized(self: "Machine", X: np.ndarray, *args: Any, **options: Any) -> Any:
        m = len(self.rows) if self.leaves is None else int(np.bincount(self.leaves).max())
        with threads_for(math.isqrt(len(X) * m)):
            return method(self, X, *args, **options)

    return sized  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Machine:
    """The function f(x) = sum_j alpha_j k(w(x_j), w(x)) over the rows x_j in the leaf of x, with the column warp w.

    Attributes
    ----------
    kernel : Kernel
        The kernel of warped columns, with the learned metric and a number for the bandwidth.
    columns : ColumnWarp
        The warp w.
    rows : ndarray of shape (m, d)
        The rows x_j before the warp. Machines that are averaged share one array.
    alpha : ndarray of shape (m, c)
        The coefficients of the rows.
    ridge : float
        The noise variance relative to the output scale.
    share : float
        The share of this machine if several are averaged.
    output_scales : ndarray of shape (c,)
        The prior variance of each output.
    weights : ndarray of shape (m,) or None
        The weights of the rows: ridge / weight is the noise of the target of a row. None if all are 1.
    partition : Partition or None
        The partition that assigns a row to a leaf; None if there is one leaf.
    leaves : ndarray of shape (m,) or None
        The leaf of each of `rows`.
    posterior_root : float32 ndarray of shape (m (m + 1) / 2,) or None
        With landmarks, the information of all rows that determines variances: the lower triangle, row by row, of R with
        R^T R = (I + L^-1 K_mn W K_nm L^-T / ridge)^-1 and L the Cholesky factor of K_mm (`landmark_posterior_root`).
        None if variances follow from the rows of the machine alone, or are never needed.

    Notes
    -----
    Cholesky factors are computed when variances are needed. Without landmarks, the machine stores nothing of the size
    of the kernel matrix.
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
    posterior_root: np.ndarray | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are not part of the state.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def changed(self, **values: Any) -> "Machine":
        """Return the machine with some fields replaced."""
        return replace(self, **values)

    @with_threads_for_its_rows
    def mean(self, X: np.ndarray, working_memory: float = WORKING_MEMORY, device: Any = None) -> np.ndarray:
        """Return f at the n rows of X, of shape (n, c)."""
        x, alpha = self._warped(X), as_tensor(self.alpha, dtype=torch.float64, device=device)
        values = np.empty((len(X), self.alpha.shape[1]))
        for rows, own in self._by_leaf(X):
            Z = self.basis[own].to(device=device)
            features = landmark_features(self.kernel, x[rows], Z, alpha[own], working_memory=working_memory)
            values[rows] = features.cpu().numpy()
        return values

    @with_threads_for_its_rows
    def unit_variance(self, X: np.ndarray, working_memory: float = WORKING_MEMORY, device: Any = None) -> np.ndarray:
        """Return the variance of f at the rows of X for an output scale of 1, without the noise, of shape (n,)."""
        x, variance = self._warped(X), np.empty(len(X))
        for rows, own in self._by_leaf(X):
            Z, factors = self.basis[own].to(device=device), self._factors(own, device)
            prepared, parts = self.kernel.prepare(Z), []
            bytes_per_row = (block_numbers(*Z.shape) + 2 * len(Z)) * Z.element_size()
            for _, (block,) in walk(
                [x[rows]], bytes_per_row=bytes_per_row, working_memory=working_memory, dtype=Z.dtype, device=device
            ):
                prepared_block = self.kernel.prepare(block, beside=prepared)
                K = self.kernel.values(prepared_block, prepared).T
                H, RH = solved_by_factors(factors, K)
                part = self.kernel.prepared_diagonal(prepared_block) - H.square().sum(dim=0)
                parts.append(part if RH is None else part + RH.square().sum(dim=0))
            variance[rows] = torch.cat(parts).clamp_(min=0.0).cpu().numpy()
        return variance

    @with_threads_for_its_rows
    def unit_covariance(self, X: np.ndarray, device: Any = None) -> np.ndarray:
        """Return the covariance of f between the rows of X for an output scale of 1; it is 0 between leaves."""
        x, covariance = self._warped(X), np.zeros((len(X), len(X)))
        for rows, own in self._by_leaf(X):
            Z, factors = self.basis[own].to(device=device), self._factors(own, device)
            part = as_tensor(x[rows], dtype=Z.dtype, device=device)
            H, RH = solved_by_factors(factors, self.kernel.matrix(Z, part))
            block = self.kernel.matrix(part) - H.T @ H
            if RH is not None:
                block += RH.T @ RH
            index = np.arange(len(X))[rows]
            covariance[np.ix_(index, index)] = block.cpu().numpy()
        return covariance

    @with_threads_for_its_rows
    def gradients(self, X: np.ndarray, working_memory: float = WORKING_MEMORY) -> np.ndarray:
        """Return the gradient of f with respect to the columns before the warp, of shape (n, c, d)."""
        x, result = self._warped(X), np.empty((len(X), self.alpha.shape[1], X.shape[1]))
        for rows, own in self._by_leaf(X):
            Z, alpha = self.basis[own].numpy(), self.alpha[own]
            result[rows] = predictor_gradients(self.kernel, x[rows], Z, alpha, working_memory=working_memory)
        return result * self.columns.slopes(X)[:, None, :]

    @with_threads_for_its_rows
    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Return the term of each row x_j in f, of shape (n, m, c), which is 0 for rows of other leaves."""
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
    def _known_factors(self) -> Kept[Factors]:
        return Kept(lambda factors: sum(each.nbytes for each in factors if each is not None))

    def _factors(self, own: Any, device: Any) -> Factors:
        """Return the Cholesky factor L of K + ridge W^-1 in a leaf and None; with landmarks, that of K_mm and R.

        With h = L^-1 k, the variance is k(x, x) - |h|^2, and with landmarks k(x, x) - |h|^2 + |R h|^2.
        """

        def factored() -> Factors:
            A, root = self.kernel.matrix(self.basis[own].to(device=device)), None
            if self.posterior_root is not None:
                root = as_tensor(unpacked_triangle(self.posterior_root, len(A)), dtype=A.dtype, device=device)
            else:
                noise = self.ridge if self.weights is None else self.ridge / as_tensor(self.weights[own], device=device)
                A.diagonal().add_(noise)
            # Landmarks that are close to each other need jitter, as they did in the fit, so there is no warning.
            return cholesky(A, warn=root is None).lower, root

        return self._known_factors.get(0 if self.leaves is None else int(self.leaves[own[0]]), factored)

    def _by_leaf(self, X: np.ndarray) -> Iterator[tuple[Any, Any]]:
        """Yield, for each leaf, the indices of the rows of X and of the rows of the machine that are in it."""
        if self.partition is None or self.leaves is None:
            yield slice(None), slice(None)
            return
        asked = self.partition.leaves_of(X)
        for leaf in np.unique(asked):
            yield np.flatnonzero(asked == leaf), np.flatnonzero(self.leaves == leaf)

    def _warped(self, X: np.ndarray) -> np.ndarray:
        return self.columns.transform(X.astype(np.float64, copy=False))


def solved_by_factors(factors: Factors, K: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return H = L^-1 K, and R H on landmarks (see `Machine._factors`): covariances are k - H^T H + (R H)^T R H."""
    lower, root = factors
    H = torch.linalg.solve_triangular(lower, K, upper=False)
    return H, None if root is None else root @ H


def packed_triangle(lower: np.ndarray) -> np.ndarray:
    """Return the entries of a lower triangular matrix, row by row, of shape (m (m + 1) / 2,)."""
    return lower[np.tri(len(lower), dtype=bool)]


def unpacked_triangle(entries: np.ndarray, m: int) -> np.ndarray:
    """Return the lower triangular matrix of shape (m, m) with these entries, the inverse of `packed_triangle`."""
    lower = np.zeros((m, m), dtype=entries.dtype)
    lower[np.tri(m, dtype=bool)] = entries
    return lower
