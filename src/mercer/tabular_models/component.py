"""A fitted kernel machine on a table: a kernel on warped columns, centres and coefficients; what can be asked of it."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.agop import agop, predictor_gradients
from mercer.blocks import WORKING_MEMORY, as_tensor, walk
from mercer.kernels import Kernel
from mercer.kernels.base import block_numbers
from mercer.landmarks.features import landmark_features
from mercer.tabular_models.column_warp import ColumnWarp


class Component(NamedTuple):
    """f(x) = sum_j alpha_j k(z_j, w(x)), w the warp of the columns; with the rest of a Gaussian process, or without.

    Attributes
    ----------
    kernel : Kernel
        On warped columns, with the learned metric and a number for the bandwidth.
    columns : ColumnWarp
    basis : ndarray of shape (m, d)
        The centres z_j, warped.
    alpha : ndarray of shape (m, c)
    ridge : float
        The noise variance relative to the output scale.
    weight : float
        Its share where several components are averaged.
    output_scales : ndarray of shape (c,)
        The variance of the prior, one an output.
    lower : ndarray of shape (m, m) or None
        The Cholesky factor of K + ridge W^-1 over the basis; of K_mm with landmarks.
    shared_noise : float
        The part of the ridge that identical rows share: what is noise to its neighbours, but not to a copy of it.
    gained : ndarray of shape (m, m) or None
        With landmarks, the Cholesky factor of K_mm + K_mn W K_nm / ridge: what the rows add to the prior.
    """

    kernel: Kernel
    columns: ColumnWarp
    basis: np.ndarray
    alpha: np.ndarray
    ridge: float
    weight: float
    output_scales: np.ndarray
    shared_noise: float = 0.0
    lower: np.ndarray | None = None
    gained: np.ndarray | None = None

    @property
    def measurement_noise(self) -> float:
        """The part of the ridge that every observation has for itself."""
        return self.ridge - self.shared_noise

    def mean(self, X: np.ndarray, working_memory: float = WORKING_MEMORY, device: Any = None) -> np.ndarray:
        """Return f at the rows of X, of shape (n, c)."""
        Z, alpha = self._tensors(device)
        x = self._warped(X)
        values = landmark_features(self.kernel, x, Z, alpha, working_memory=working_memory).cpu().numpy()
        rows, centres = self._copies(x)
        values[rows] += self.shared_noise * self.alpha[centres]
        return values

    def unit_variance(self, X: np.ndarray, working_memory: float = WORKING_MEMORY, device: Any = None) -> np.ndarray:
        """Return the variance at the rows of X for an output scale of 1, without the noise of an observation."""
        Z, _ = self._tensors(device)
        lower, gained = self._factors(Z)
        prepared = self.kernel.prepare(Z)
        parts = []
        warped = self._warped(X)
        place = np.full(len(X), -1)
        rows, centres = self._copies(warped)
        place[rows] = centres
        bytes_per_row = (block_numbers(*Z.shape) + 2 * len(Z)) * Z.element_size()
        for block, (x,) in walk(
            [warped], bytes_per_row=bytes_per_row, working_memory=working_memory, dtype=Z.dtype, device=device
        ):
            x = self.kernel.prepare(x, beside=prepared)
            K = self.kernel.values(x, prepared)
            copies = np.flatnonzero(place[block] >= 0)
            K[copies, place[block][copies]] += self.shared_noise
            K = K.T
            variance = self.kernel.prepared_diagonal(x) + self.shared_noise - _squared_solve(lower, K)
            parts.append(variance if gained is None else variance + _squared_solve(gained, K))
        return torch.cat(parts).clamp_(min=0.0).cpu().numpy()

    def unit_covariance(self, X: np.ndarray, device: Any = None) -> np.ndarray:
        """Return the covariance between the rows of X for an output scale of 1, without the noise of an observation."""
        Z, _ = self._tensors(device)
        lower, gained = self._factors(Z)
        warped = self._warped(X)
        x = as_tensor(warped, dtype=Z.dtype, device=device)
        K, prior = self.kernel.matrix(Z, x), self.kernel.matrix(x)
        if self.shared_noise:
            rows, centres = self._copies(warped)
            K[centres, rows] += self.shared_noise
            _, same = np.unique(warped, axis=0, return_inverse=True)
            prior += self.shared_noise * as_tensor(same.ravel()[:, None] == same.ravel(), dtype=Z.dtype, device=device)
        half = torch.linalg.solve_triangular(lower, K, upper=False)
        covariance = prior - half.T @ half
        if gained is not None:
            half = torch.linalg.solve_triangular(gained, K, upper=False)
            covariance += half.T @ half
        return covariance.cpu().numpy()

    def gradients(self, X: np.ndarray, working_memory: float = WORKING_MEMORY) -> np.ndarray:
        """Return the gradient of f in the units of the columns, of shape (n, c, d)."""
        G = predictor_gradients(self.kernel, self._warped(X), self.basis, self.alpha, working_memory=working_memory)
        return G * self.columns.slopes(X)[:, None, :]

    def contributions(self, X: np.ndarray) -> np.ndarray:
        """Return alpha_j k(z_j, x) for each row and centre, of shape (n, m, c): what each centre adds to f."""
        x = self._warped(X)
        K = self.kernel.matrix(x, self.basis)
        rows, centres = self._copies(x)
        K[rows, centres] += self.shared_noise
        return K[:, :, None] * self.alpha

    def importances(self, most_rows: int = 2000) -> np.ndarray:
        """Return how much each column counts: the diagonal of the metric, summing to 1.

        The identity prefers no column; the average squared gradient of f over the basis then takes its place.
        """
        d = self.basis.shape[1]
        metric = self.kernel.common_metric()
        if metric is not None and metric.factor is not None:
            return metric.importances(d)
        rows = self.basis[:: -(-len(self.basis) // most_rows)]
        squares = agop(self.kernel, rows, self.basis, self.alpha, diagonal=True)
        return squares / squares.sum() if squares.sum() > 0 else np.full(d, 1.0 / d)

    def _copies(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which of the warped rows are equal to which centre; none where identical rows share no noise."""
        if not self.shared_noise:
            return np.zeros(0, dtype=int), np.zeros(0, dtype=int)
        known = {row.tobytes(): j for j, row in enumerate(self.basis + 0.0)}
        found = [known.get(row.tobytes(), -1) for row in x + 0.0]
        rows = np.flatnonzero(np.array(found) >= 0)
        return rows, np.array(found, dtype=int)[rows]

    def _warped(self, X: np.ndarray) -> np.ndarray:
        # In float64 whatever the precision of X, so that a copy of a row is warped to the same numbers.
        return self.columns.transform(X.astype(np.float64, copy=False)).astype(self.basis.dtype, copy=False)

    def _tensors(self, device: Any) -> tuple[Tensor, Tensor]:
        Z = as_tensor(self.basis, device=device)
        return Z, as_tensor(self.alpha, dtype=Z.dtype, device=device)

    def _factors(self, Z: Tensor) -> tuple[Tensor, Tensor | None]:
        if self.lower is None:
            raise ValueError("the component has no Cholesky factor: it predicts means only.")
        lower = as_tensor(self.lower, dtype=Z.dtype, device=Z.device)
        return lower, None if self.gained is None else as_tensor(self.gained, dtype=Z.dtype, device=Z.device)


def _squared_solve(lower: Tensor, K: Tensor) -> Tensor:
    """Return |L^-1 k|^2 for each column k of K."""
    return torch.linalg.solve_triangular(lower, K, upper=False).square_().sum(dim=0)
