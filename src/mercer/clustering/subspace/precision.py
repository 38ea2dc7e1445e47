"""The mean local covariance of self-expression in closed form, and the projection that is made of it."""

from typing import NamedTuple

import torch
from torch import Tensor

from mercer.clustering.expression.ridge import regularized_inverse
from mercer.clustering.subspace.jacobians import jacobians
from mercer.kernels import Kernel, Linear

# How a variance D becomes the weight of its direction: as in line 6 of Algorithm 1, and as in Lemma 1.
INVERSIONS = {
    "algorithm": lambda D, shrinkage: D / (D + shrinkage).square(),
    "lemma": lambda D, shrinkage: 1.0 / (D + shrinkage),
}


def latent_covariance(kernel: Kernel, X: Tensor, ridge: float, *, K: Tensor | None = None) -> Tensor:
    """Return the mean local covariance of self-expression in the kernel's space (Alg. 1, line 4).

    Each point is expressed by the others, f_i(x) = phi(X_-i) (K_-i + ridge I)^-1 k_-i(x). With G_i of shape (n, d) the
    derivatives of k(x, x_j) at x = x_i, its Jacobian has the covariance G_i^T A_i G_i, where
    A_i = (K_-i + ridge I)^-1 K_-i (K_-i + ridge I)^-1 with a zero row and column i. As written that is n inverses.
    Here R_i = Q - q q^T / Q_ii with Q = (K + ridge I)^-1 and q = Q e_i takes their place, and A_i = R_i - ridge R_i^2:
    one matrix A = Q - ridge Q^2 shared by all points, less terms of rank two.

    Parameters
    ----------
    kernel : Kernel
        k, with numbers for its bandwidths.
    X : tensor of shape (n, d)
    ridge : float
        Absolute.
    K : tensor of shape (n, n), optional
        The kernel matrix of X, where it is known.

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
    """Return `latent_covariance` for k(x, z) = x^T z, where G_i = X for all points, in three products and not nine.

    Then u_i and v_i are the rows of U = Q X and V = Q U, and sum_i G_i^T A G_i = n (X^T U - ridge U^T U). All terms
    are products with U, and the whole is B^T U + U^T B for the B below.
    """
    U = Q @ X
    V = Q @ U
    d, e = Q.diagonal()[:, None], Q.square().sum(dim=1)[:, None]
    B = 0.5 * len(X) * X + (ridge / d) * V - 0.5 * (1.0 / d + ridge * e / d.square() + len(X) * ridge) * U
    half = B.T @ U
    return (half + half.T) / len(X)


def data_covariance(kernel: Kernel, X: Tensor, ridge: float, *, K: Tensor | None = None) -> Tensor:
    """Return the mean local covariance of self-expression mapped back to the data, h = g(f(x)) (section 4.3).

    g is the ridge regression from the kernel's space to the rows themselves, so that h(x) = X^T Q K Q k(x) with
    Q = (K + ridge I)^-1 (appendix C): the average gradient outer product of the predictor with coefficients Q K Q X.
    Its d outputs are summed first, into A = Q K Q X X^T Q K Q.

    Parameters
    ----------
    kernel, X, ridge, K
        As in `latent_covariance`.
    """
    Q = regularized_inverse(kernel.matrix(X) if K is None else K, ridge)
    alpha = (Q - ridge * (Q @ Q)) @ X  # Q K Q = Q - ridge Q^2
    return jacobians(kernel, X).outer_products(alpha @ alpha.T) / len(X)


class Projection(NamedTuple):
    """A projection of rows, x -> x U diag(weights) U^T, by the spectrum of a covariance.

    Attributes
    ----------
    U : tensor of shape (d, r)
        Orthonormal directions.
    weights : tensor of shape (r,)
        The largest is 1.
    """

    U: Tensor
    weights: Tensor

    def matrix(self) -> Tensor:
        """Return the projection itself, symmetric of shape (d, d)."""
        return self.along_directions() @ self.U.T

    def along_directions(self) -> Tensor:
        """Return U diag(weights), of shape (d, r): the same inner products of projected rows, for half the work."""
        return self.U * self.weights


def projection_by(U: Tensor, weights: Tensor, rank: int | None = None) -> Projection:
    """Return the projection with the root of a weight, the largest made 1, for each direction (Alg. 1, lines 7 to 9).

    Parameters
    ----------
    U : tensor of shape (d, d)
        Orthonormal directions in the columns.
    weights : tensor of shape (d,)
    rank : int, optional
        Keep only the directions of so many of the largest weights.
    """
    weights = weights / weights.max()
    if rank is not None:
        kept = torch.topk(weights, min(rank, len(weights))).indices
        weights, U = weights[kept], U[:, kept]
    return Projection(U, weights.sqrt())
