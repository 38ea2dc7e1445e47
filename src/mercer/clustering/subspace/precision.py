"""The mean local covariance of self-expression in closed form, and projections by its eigenvectors."""

from typing import NamedTuple

import torch
from torch import Tensor

from mercer.clustering.expression.ridge import regularized_inverse
from mercer.clustering.subspace.jacobians import jacobians
from mercer.kernels import Kernel, Linear

# The weight of a direction with variance D, by line 6 of Algorithm 1 and by Lemma 1.
INVERSIONS = {
    "algorithm": lambda D, shrinkage: D / (D + shrinkage).square(),
    "lemma": lambda D, shrinkage: 1.0 / (D + shrinkage),
}


def latent_covariance(kernel: Kernel, X: Tensor, ridge: float, *, K: Tensor | None = None) -> Tensor:
    """Return the mean local covariance of self-expression in the kernel's space (Alg. 1, line 4).

    Each point is expressed by the others, f_i(x) = phi(X_-i) (K_-i + ridge I)^-1 k_-i(x). Let G_i of shape (n, d) be
    the derivatives of k(x, x_j) at x = x_i. The Jacobian of f_i then has the covariance G_i^T A_i G_i, where
    A_i = (K_-i + ridge I)^-1 K_-i (K_-i + ridge I)^-1, with zeros in row and column i. Computed like this, it takes n
    inverses. One inverse Q = (K + ridge I)^-1 is enough: with q = Q e_i and R_i = Q - q q^T / Q_ii, it is
    A_i = R_i - ridge R_i^2. This is a matrix A = Q - ridge Q^2 that all points share, minus terms of rank two.

    Parameters
    ----------
    kernel : Kernel
        k; its bandwidths must be numbers.
    X : tensor of shape (n, d)
        The points.
    ridge : float
        The ridge as an absolute number.
    K : tensor of shape (n, n), optional
        The kernel matrix of X, if it is already known.

    Returns
    -------
    tensor of shape (d, d)

    Notes
    -----
    O(n^3 + n^2 d + n d^2) for kernels with one pair of gradient weights; O(n^3 d) for others.
    """
    Q = regularized_inverse(kernel.matrix(X) if K is None else K, ridge)
    if isinstance(kernel, Linear) and kernel.metric is None and kernel.offset == 0.0:
        return _linear_latent_covariance(X, Q, ridge)
    G = jacobians(kernel, X)
    Q2 = Q @ Q
    U, V = G.along(Q), G.along(Q2)  # rows u_i = G_i^T q and v_i = G_i^T Q q
    d, e = Q.diagonal()[:, None], Q2.diagonal()[:, None]
    crossed = (ridge * V / d).T @ U
    rank_two = crossed + crossed.T - (U * (1.0 / d + ridge * e / d.square())).T @ U
    return (G.outer_products(Q - ridge * Q2) + rank_two) / len(X)


def _linear_latent_covariance(X: Tensor, Q: Tensor, ridge: float) -> Tensor:
    """Return `latent_covariance` for k(x, z) = x^T z, in three matrix products instead of nine.

    Here G_i = X for all points. Then u_i and v_i are the rows of U = Q X and V = Q U, and
    sum_i G_i^T A G_i = n (X^T U - ridge U^T U). All terms are products with U, and their sum is B^T U + U^T B for the
    B below.
    """
    U = Q @ X
    V = Q @ U
    d, e = Q.diagonal()[:, None], Q.square().sum(dim=1)[:, None]
    B = 0.5 * len(X) * X + (ridge / d) * V - 0.5 * (1.0 / d + ridge * e / d.square() + len(X) * ridge) * U
    half = B.T @ U
    return (half + half.T) / len(X)


def data_covariance(kernel: Kernel, X: Tensor, ridge: float, *, K: Tensor | None = None) -> Tensor:
    """Return the mean local covariance of self-expression mapped back to the data, h = g(f(x)) (section 4.3).

    g is the ridge regression from the kernel's space to the rows themselves. Thus h(x) = X^T Q K Q k(x) with
    Q = (K + ridge I)^-1 (appendix C), and the result is the average gradient outer product of the predictor with
    coefficients Q K Q X. The sum over its d outputs is taken first, as A = Q K Q X X^T Q K Q.

    Parameters
    ----------
    kernel, X, ridge, K
        As in `latent_covariance`.
    """
    Q = regularized_inverse(kernel.matrix(X) if K is None else K, ridge)
    alpha = (Q - ridge * (Q @ Q)) @ X  # Q K Q = Q - ridge Q^2
    return jacobians(kernel, X).outer_products(alpha @ alpha.T) / len(X)


class Projection(NamedTuple):
    """A projection of rows, x -> x U diag(weights) U^T, along the eigenvectors of a covariance.

    Attributes
    ----------
    U : tensor of shape (d, r)
        Orthonormal directions, in columns.
    weights : tensor of shape (r,)
        The weights of the directions. The largest is 1.
    """

    U: Tensor
    weights: Tensor

    def matrix(self) -> Tensor:
        """Return the projection as a symmetric matrix of shape (d, d)."""
        return self.along_directions() @ self.U.T

    def along_directions(self) -> Tensor:
        """Return U diag(weights), of shape (d, r), which gives the same inner products of rows for half the work."""
        return self.U * self.weights


def projection_by(U: Tensor, weights: Tensor, rank: int | None = None) -> Projection:
    """Return the projection by the square roots of weights, scaled so that the largest is 1 (Alg. 1, lines 7 to 9).

    Parameters
    ----------
    U : tensor of shape (d, d)
        Orthonormal directions, in columns.
    weights : tensor of shape (d,)
        The weight of each direction, before the root.
    rank : int, optional
        The number of directions that are kept, those with the largest weights.
    """
    weights = weights / weights.max()
    if rank is not None:
        kept = torch.topk(weights, min(rank, len(weights))).indices
        weights, U = weights[kept], U[:, kept]
    return Projection(U, weights.sqrt())
