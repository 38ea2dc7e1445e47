"""Kernels that are products over columns, k(x, z) = prod_k kappa(|x_k - z_k|): each column has a factor of its own."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from mercer.blocks import as_tensor
from mercer.kernels.base import GradientTerm
from mercer.kernels.radial import BandwidthKernel
from mercer.mahalanobis import Mahalanobis, ProjectedRows

# Values are computed in slabs of this many numbers. A slab stays in the cache while the factors of all columns are
# multiplied into it.
SLAB_NUMBERS = 131_072
# The factors of several columns are multiplied before their logarithm is taken. If the largest factor is known, the
# product may reach this power of ten; otherwise 8 columns are multiplied, which does not overflow for differences of up
# to 1e38 bandwidths.
LARGEST_EXPONENT, COLUMNS_A_LOGARITHM = 280.0, 8
# Differences up to this many units of rounding error count as zero, since the projection may round equal rows
# differently.
NOISE_UNITS = 64.0


class CoordinatewiseKernel(BandwidthKernel):
    """k(x, z) = prod_k kappa(u_k), u_k = |x'_k - z'_k| / bandwidth, where x' = x L and M = L L^T is the metric.

    The factors of the columns are multiplied, so that two rows are similar only if they are similar in every important
    column. A kink or a jump in one column stays in that column, whereas a radial kernel smooths over all of them. Under
    a full metric the "columns" are the principal directions of M.

    A subclass defines kappa(u) = factor(u) exp(-rate u) by `factor` and `rate`, and the derivative by `weight`.

    Notes
    -----
    O(nmd) time without a matrix product: several times slower than a radial kernel if d is large.
    """

    rate: float
    _order = 1

    @abstractmethod
    def factor(self, u: Tensor) -> Tensor | None:
        """Return kappa(u) exp(rate u) for u >= 0 in a new array, or None if it is 1 everywhere."""

    def factor_(self, u: Tensor) -> Tensor:
        """Return `factor(u)`, or ones if that is None. May overwrite its argument."""
        made = self.factor(u)
        return torch.ones_like(u) if made is None else made

    @abstractmethod
    def weight(self, u: Tensor) -> Tensor:
        """Return -(log kappa)'(u) / u, or zero at u = 0 if it does not exist there. May overwrite its argument."""

    def length_scale_move(self, u: Tensor) -> Tensor:
        """Return weight(u) u^2, how much log k changes with the logarithm of a length scale. May overwrite u."""
        return u.square() * self.weight(u)

    def values(self, x: ProjectedRows, z: ProjectedRows, scratch: Tensor | None = None) -> Tensor:
        a, b = x.rows / self.scale(), z.rows / self.scale()
        if a.requires_grad or b.requires_grad:
            return self._product(a, b)
        K = torch.cdist(a, b, p=1).mul_(-self.rate)
        if self.factor(a[:1, :1]) is None or not len(a) or not len(b):
            return K.exp_()
        return self._with_factors_(K, a, b, are_equal=x is z)

    def _with_factors_(self, exponent: Tensor, a: Tensor, b: Tensor, are_equal: bool) -> Tensor:
        """Return exp(exponent) prod_k factor(|a_k - b_k|), computed in slabs and written into `exponent`.

        If `are_equal`, both sides are the same rows: half of the matrix is computed and the other half mirrored.
        """
        both = torch.cat([a, b])
        spread = both.amax(dim=0) - both.amin(dim=0)
        # A column in which all rows are equal has a factor of 1 and is skipped.
        columns = torch.nonzero(spread > 0).flatten().tolist()
        largest = float(self.factor_(spread.max(dim=0, keepdim=True).values))
        per_logarithm = max(1, int(LARGEST_EXPONENT / max(math.log10(largest), 1e-3)))
        row = 0
        while row < len(a):
            first = row if are_equal else 0
            step = max(1, SLAB_NUMBERS // (len(b) - first))
            slab = exponent[row : row + step, first:]
            product, u = torch.ones_like(slab), torch.empty_like(slab)
            for place, k in enumerate(columns, start=1):
                torch.sub(a[row : row + step, k, None], b[first:, k], out=u)
                product.mul_(self.factor_(u.abs_()))
                if place % per_logarithm == 0 and place < len(columns):
                    slab.add_(product.log_())
                    product = torch.ones_like(slab)
            slab.exp_().mul_(product)
            if are_equal:
                exponent[row + step :, row : row + step] = slab[:, step:].T
            row += step
        return exponent

    def _product(self, a: Tensor, b: Tensor) -> Tensor:
        """Return prod_k kappa(|a_k - b_k|) by operations that torch can differentiate."""
        exponent = torch.zeros((len(a), len(b)), dtype=b.dtype, device=b.device)
        factor: Tensor | None = None
        for k, (p, q) in enumerate(zip(a.T, b.T, strict=True), start=1):
            u = (p[:, None] - q).abs()
            own = self.factor(u)
            exponent = exponent - self.rate * u
            factor = own if factor is None or own is None else factor * own
            if factor is not None and k % COLUMNS_A_LOGARITHM == 0:
                exponent, factor = exponent + factor.log(), None
        K = torch.exp(exponent)
        return K if factor is None else K * factor

    def prepared_diagonal(self, x: ProjectedRows) -> Tensor:
        return torch.ones_like(x.norms)

    def gradient_terms(self, x: ProjectedRows, z: ProjectedRows) -> Iterator[GradientTerm]:
        """Yield one term for each column. The weights of column k are P_k = k(x, z) weight(u_k) / bandwidth^2."""
        return self._terms(x, z, self.values(x, z) / self.scale() ** 2)

    def values_and_terms(self, x: ProjectedRows, z: ProjectedRows) -> tuple[Tensor, "ColumnTerms"]:
        K = self.values(x, z)
        return K, ColumnTerms(self, x, z, K.clone())

    def _terms(self, x: ProjectedRows, z: ProjectedRows, K: Tensor) -> Iterator[GradientTerm]:
        unit = NOISE_UNITS * torch.finfo(K.dtype).eps / self.scale()
        noise = unit * torch.maximum(_sizes(x), _sizes(z))
        for k, u in enumerate(self._differences(x, z)):
            u.masked_fill_(u <= noise[k], 0.0)
            P = self.weight(u).mul_(K)
            yield GradientTerm(_column(z.metric, k, z.raw.shape[1]), P, P, x.rows[:, k : k + 1], z.rows[:, k : k + 1])

    @property
    def has_gradient_weights(self) -> bool:
        return False

    def gradient_weights(self, X: Any, Z: Any = None) -> tuple[Any, Any]:
        raise TypeError(
            f"{self!r} has weights a column, not one pair (P, Q) for all of them: `gradient_terms` yields them."
        )

    def _differences(self, x: ProjectedRows, z: ProjectedRows) -> Iterator[Tensor]:
        """Yield the matrix of u_k between all pairs of rows, for each column k."""
        rate = 1.0 / self.scale()
        for a, b in zip((x.rows * rate).T, (z.rows * rate).T, strict=True):
            difference = a[:, None] - b
            yield difference.abs() if difference.requires_grad else difference.abs_()


class ColumnTerms:
    """The gradient terms of a product over columns, and the sums that gradients by length scales need.

    Iterating yields the terms, one for each column. `length_scale_sums` is cheaper and computes none of them: with
    v_j = weight(u_j) u_j^2, the derivative of k by the logarithm of the length scale of column j is k v_j.
    """

    def __init__(self, kernel: CoordinatewiseKernel, x: ProjectedRows, z: ProjectedRows, K: Tensor) -> None:
        self.kernel, self.x, self.z, self.K = kernel, x, z, K

    def __iter__(self) -> Iterator[GradientTerm]:
        return self.kernel._terms(self.x, self.z, self.K / self.kernel.scale() ** 2)

    def length_scale_sums(self, G: Tensor) -> Tensor:
        """Return sum_ij G_ij dk(x_i, z_j) / d log l_j for each column j."""
        B = G * self.K
        if self.x is not self.z:
            moves = (self.kernel.length_scale_move(u) for u in self.kernel._differences(self.x, self.z))
            return torch.stack([B.flatten() @ move.flatten() for move in moves])
        # For the same rows on both sides, the derivative is symmetric and its diagonal is zero: one half is enough.
        B = torch.triu(B + B.T, diagonal=1)
        rows, row = self.x.rows / self.kernel.scale(), 0
        sums = torch.zeros(rows.shape[1], dtype=B.dtype, device=B.device)
        while row < len(rows):
            step = max(1, SLAB_NUMBERS // (len(rows) - row))
            slab = B[row : row + step, row:].flatten()
            for k in range(rows.shape[1]):
                u = (rows[row : row + step, k, None] - rows[row:, k]).abs_()
                sums[k] += slab @ self.kernel.length_scale_move(u).flatten()
            row += step
        return sums


class ProductLaplace(CoordinatewiseKernel):
    """k(x, z) = exp(-sum_k |x_k - z_k| / bandwidth), the Laplace kernel of the sum of absolute differences.

    It is the limit of random forests of Mondrian partitions, and fits effects that are local in a few columns.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
        The length scale of the differences. "median" becomes, in `fit`, the median over pairs of rows of the sum of
        their absolute differences.
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        The matrix M = L L^T, or a vector with its diagonal; x and z become x L and z L. None is the identity.

    Notes
    -----
    The kernel has a kink where two rows are equal in a column. Its derivative by that column is set to zero there.
    """

    rate = 1.0

    def factor(self, u: Tensor) -> None:
        return None

    def matrices(self, X: Tensor) -> Callable[[float], Tensor]:
        """Return the function factor -> `rescaled(factor).matrix(X)`. Differences are summed once for all factors."""
        rows = self.prepare(X).rows / self.scale()
        sums = torch.cdist(rows, rows, p=1)
        return lambda factor: (sums * (-1.0 / factor)).exp_()

    def weight(self, u: Tensor) -> Tensor:
        return u.masked_fill_(u == 0, float("inf")).reciprocal_()

    def length_scale_move(self, u: Tensor) -> Tensor:
        return u


class ProductMatern32(CoordinatewiseKernel):
    """k(x, z) = prod_k (1 + v_k) exp(-v_k), v_k = sqrt(3) |x_k - z_k| / bandwidth: Matérn kernels of smoothness 3/2.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
        The length scale of the differences. "median" becomes, in `fit`, the median over pairs of rows of the sum of
        their absolute differences.
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        The matrix M = L L^T, or a vector with its diagonal; x and z become x L and z L. None is the identity.
    """

    rate = 3**0.5

    def factor(self, u: Tensor) -> Tensor:
        return self.rate * u + 1.0

    def factor_(self, u: Tensor) -> Tensor:
        return u.mul_(self.rate).add_(1.0)

    def weight(self, u: Tensor) -> Tensor:
        return (1.0 + u.mul_(self.rate)).reciprocal_().mul_(3.0)

    def length_scale_move(self, u: Tensor) -> Tensor:
        v = u.mul_(self.rate)
        return v.square().div_(v.add_(1.0))


def _sizes(x: ProjectedRows) -> Tensor:
    """Return sum_i |x_i L_ik| for each projected column k, the largest over the rows: rounding is relative to it."""
    raw = (x.raw if x.origin is None else x.raw - x.origin).abs()
    factor = None if x.metric.factor is None else as_tensor(x.metric.factor).detach().abs()
    sizes = raw if factor is None else Mahalanobis(factor).project(raw)
    return sizes.amax(dim=0) if len(sizes) else sizes.sum(dim=0)


def _column(metric: Mahalanobis, k: int, d: int) -> Mahalanobis:
    """Return the metric that keeps only the k-th projected column."""
    column = torch.zeros((d, 1), dtype=torch.float64)
    if metric.factor is None:
        column[k] = 1.0
        return Mahalanobis(column)
    factor = as_tensor(metric.factor)
    if factor.ndim == 2:
        return Mahalanobis(factor[:, k : k + 1])
    column[k] = factor[k]
    return Mahalanobis(column)
