"""The classes of rows, the components of a discriminant, and their centering, signs, scales and variances."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.linalg import EigenPairs

# A ratio below this, relative to the largest, is a rounding error.
NO_VARIANCE = 1e-10


class Groups(NamedTuple):
    """The class of each row, `of_row` of shape (n,) from 0 to c - 1, and the number of rows of each class, `counts`."""

    of_row: Tensor
    counts: Tensor

    @classmethod
    def from_index(cls, index: Tensor, n_groups: int, dtype: torch.dtype = torch.float64) -> "Groups":
        return cls(index, torch.bincount(index, minlength=n_groups).to(dtype))

    def of_rows(self, rows: np.ndarray) -> "Groups":
        """Return the classes of some rows, with the same numbers."""
        chosen = self.of_row[torch.from_numpy(rows).to(self.of_row.device)]
        return Groups.from_index(chosen, len(self.counts), self.counts.dtype)

    def sums(self, U: Tensor) -> Tensor:
        """Return the sum of U's rows in each class, of shape (c, k)."""
        return U.new_zeros((len(self.counts), U.shape[1])).index_add_(0, self.of_row, U)

    def means(self, U: Tensor) -> Tensor:
        """Return the mean of U's rows in each class, of shape (c, k)."""
        return self.sums(U) / self.counts[:, None].to(U.dtype)

    def project(self, U: Tensor) -> Tensor:
        """Return P U: every row replaced by the mean of its class."""
        return self.means(U)[self.of_row]

    def indicators(self) -> Tensor:
        """Return J of shape (n, c) with orthonormal columns and P = J J^T."""
        J = self.counts.new_zeros((len(self.of_row), len(self.counts)))
        J[torch.arange(len(self.of_row)), self.of_row] = self.counts[self.of_row].rsqrt()
        return J


class Discriminants(NamedTuple):
    """The components of a discriminant, one in each column, in decreasing order of their ratios.

    Attributes
    ----------
    alpha : tensor of shape (n, k), or (m, k) with landmarks
        The coefficients of the components.
    values : tensor of shape (n, k)
        The values u = K alpha, scaled to unit regularized within-class variance.
    ratios : tensor of shape (k,)
        The regularized ratios, the eigenvalues of (13).
    left_out : tensor of shape (n, k)
        The leave-one-out values of each row, for fixed scores of the classes.
    """

    alpha: Tensor
    values: Tensor
    ratios: Tensor
    left_out: Tensor


def centered(U: Tensor) -> Tensor:
    """Return C U, in which every column has mean 0."""
    return U - U.mean(dim=0)


def double_centered(K: Tensor) -> Tensor:
    """Return C K C, the kernel matrix of the centered features."""
    rows, columns = K.mean(dim=1, keepdim=True), K.mean(dim=0)
    return (K - rows).sub_(columns - rows.mean())


def significant(pairs: EigenPairs) -> EigenPairs:
    """Drop components without variance.

    H is computed as I - ridge (A + ridge I)^-1, so its zero eigenvalues come out as rounding errors.
    """
    if not len(pairs.values):
        return pairs
    kept = pairs.values > NO_VARIANCE * pairs.values.max().clamp(min=1.0)
    return EigenPairs(pairs.values[kept], pairs.vectors[:, kept])


def steady_signs(U: Tensor) -> Tensor:
    """Return the signs that make the largest entry of each column positive, since eigenvectors have an arbitrary sign.

    Among entries that are equal up to rounding the first one counts, so that ties are always broken in the same way.
    """
    large = U.abs() >= (1.0 - 1e-6) * U.abs().amax(dim=0)
    first = large & (large.cumsum(dim=0) == 1)
    return (U * first).sum(dim=0).sign()


def unit_within(U: Tensor, mu: Tensor) -> Tensor:
    """Return the factors that scale the regularized within-class variance of each column to 1 and its total to mu."""
    return (mu / centered(U).square().mean(dim=0)).sqrt()


def variance_ratios(U: Tensor, groups: Groups) -> Tensor:
    """Return the unregularized ratio of total to within-class variance (10) of each column."""
    return centered(U).square().sum(dim=0) / (U - groups.project(U)).square().sum(dim=0)
