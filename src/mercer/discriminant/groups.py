"""Classes of rows, components with their values, and what is said of both: centering, signs, scales, variances."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.linalg import EigenPairs

# A ratio below this, relative to the largest, is rounding.
NO_VARIANCE = 1e-10


class Groups(NamedTuple):
    """Which class each row has: `of_row` of shape (n,), from 0 to c - 1, and how many rows each class has."""

    of_row: Tensor
    counts: Tensor

    @classmethod
    def from_index(cls, index: Tensor, n_groups: int, dtype: torch.dtype = torch.float64) -> "Groups":
        return cls(index, torch.bincount(index, minlength=n_groups).to(dtype))

    def of_rows(self, rows: np.ndarray) -> "Groups":
        """Return the classes of some rows, numbered as they are."""
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
    """Components in the columns, the largest ratio first.

    Attributes
    ----------
    alpha : tensor of shape (n, k), or (m, k) with landmarks
        The coefficients of the functionals.
    values : tensor of shape (n, k)
        u = K alpha, scaled to unit regularized within-class variance.
    ratios : tensor of shape (k,)
        The regularized ratios, the eigenvalues of (13).
    left_out : tensor of shape (n, k)
        What each row's values would be had it not been in the fit, the scores of the classes held.
    """

    alpha: Tensor
    values: Tensor
    ratios: Tensor
    left_out: Tensor


def centered(U: Tensor) -> Tensor:
    """Return C U: columns with mean zero."""
    return U - U.mean(dim=0)


def double_centered(K: Tensor) -> Tensor:
    """Return C K C, the kernel of the centered features."""
    rows, columns = K.mean(dim=1, keepdim=True), K.mean(dim=0)
    return (K - rows).sub_(columns - rows.mean())


def significant(pairs: EigenPairs) -> EigenPairs:
    """Drop components without variance; H is known as I - ridge (A + ridge I)^-1, so that its zeros are rounded."""
    if not len(pairs.values):
        return pairs
    kept = pairs.values > NO_VARIANCE * pairs.values.max().clamp(min=1.0)
    return EigenPairs(pairs.values[kept], pairs.vectors[:, kept])


def steady_signs(U: Tensor) -> Tensor:
    """Return the signs that make the largest entry of each column positive: eigenvectors come with either sign.

    The first of those that are largest up to rounding counts, so that ties are broken the same way each time.
    """
    large = U.abs() >= (1.0 - 1e-6) * U.abs().amax(dim=0)
    first = large & (large.cumsum(dim=0) == 1)
    return (U * first).sum(dim=0).sign()


def unit_within(U: Tensor, mu: Tensor) -> Tensor:
    """Return the scales that make the regularized within-class variance of each column 1, the total variance mu."""
    return (mu / centered(U).square().mean(dim=0)).sqrt()


def variance_ratios(U: Tensor, groups: Groups) -> Tensor:
    """Return the unregularized ratio (10) of total to within-class variance of each column."""
    return centered(U).square().sum(dim=0) / (U - groups.project(U)).square().sum(dim=0)
