"""The exact optima of three self-supervised losses on landmarks, in whitened coordinates (f = W^T z + γ, A = B W).

Σ = E[z z^T] and S = E[z z+^T] are the moments of the whitened kernel features z, where z+ is another view of the row.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mercer.embedding.moments import Statistics
from mercer.linalg import generalized_eigenpairs, top_eigenpairs

REGULARIZERS = ("covariance", "tikhonov")


class Optimum(NamedTuple):
    """The optimal W of shape (r, h) at a ridge, the eigenvalues that rank its columns, and the bias γ of shape (h,)."""

    W: Tensor
    eigenvalues: Tensor
    ridge: float
    bias: Tensor


def spectral_contrastive_optima(
    stats: Statistics, ridges: Sequence[float], n_components: int, regularizer: str = "covariance"
) -> Iterator[Optimum]:
    """Yield, for each ridge λ, the W that minimizes a regularized spectral contrastive loss.

    With F = W W^T the loss is -2 tr(F S) + tr(F Σ F Σ). The regularizer "tikhonov" adds λ |W|^2, which replaces S by
    S - λ/2 I. "covariance" replaces Σ by Σ + λ I, so that directions with little variance must be more consistent
    between views. In both cases the loss is then |Σ^1/2 F Σ^1/2 - N|^2 plus a constant, with N = Σ^-1/2 S Σ^-1/2. Its
    minimum is the best positive approximation of N of rank h: the top eigenpairs (ρ > 0, v) of N give
    W = Σ^-1/2 V diag(√ρ).

    O(r^3) time for the eigenvectors of Σ, and then the top h eigenpairs of an (r, r) matrix for each ridge. A single
    ridge with "covariance" needs no eigenvectors of Σ: W solves the generalized eigenproblem S v = ρ (Σ + λ I) v, for
    which a Cholesky factor of Σ + λ I is enough.

    Parameters
    ----------
    stats : Statistics
        Σ and S.
    ridges : sequence of float
        The values of λ.
    n_components : int
        h.
    regularizer : {"covariance", "tikhonov"}, default="covariance"
    """
    if len(ridges) == 1 and regularizer == "covariance":
        (ridge,) = ridges
        penalized = stats.second + ridge * torch.eye(len(stats.second)).to(stats.second)
        rho, V = generalized_eigenpairs(stats.cross, penalized, n_components)
        positive = rho > 0
        W = V[:, positive] * rho[positive].sqrt()
        yield Optimum(W, rho[positive], ridge, torch.zeros_like(W[0]))
        return
    values, Q = torch.linalg.eigh(stats.second)
    S = Q.T @ stats.cross @ Q
    floor = len(values) * torch.finfo(values.dtype).eps * values[-1].clamp(min=0.0)
    for ridge in ridges:
        if regularizer == "covariance":
            scales, N = values.clamp(min=0.0) + ridge, S
        else:
            scales, N = values, S - 0.5 * ridge * torch.eye(len(S), dtype=S.dtype, device=S.device)
        # In directions in which no row varies, Σ has no inverse root, and the loss does not depend on W.
        root = torch.where(scales > floor, scales.clamp(min=1e-300).rsqrt(), 0.0)
        N = root[:, None] * N * root
        rho, V = top_eigenpairs((N + N.T) / 2, n_components)
        positive = rho > 0
        W = Q @ (root[:, None] * V[:, positive]) * rho[positive].sqrt()
        yield Optimum(W, rho[positive], ridge, torch.zeros_like(W[0]))


def kernel_pca_optima(stats: Statistics, ridges: Sequence[float], n_components: int) -> Iterator[Optimum]:
    """Yield, for each ridge λ, the W that minimizes the loss of kernel principal components plus λ |W|^2.

    The columns of W are the eigenvectors of Σ with the largest eigenvalues μ, each multiplied by
    sqrt(max(0, 1 - λ / (2 μ))).
    """
    mu, V = top_eigenpairs(stats.second, n_components)
    for ridge in ridges:
        kept = mu > max(0.5 * ridge, len(V) * torch.finfo(mu.dtype).eps * float(mu[0]))
        W = V[:, kept] * (1.0 - 0.5 * ridge / mu[kept]).sqrt()
        yield Optimum(W, mu[kept], ridge, torch.zeros_like(W[0]))


def simple_contrastive_optima(stats: Statistics, ridges: Sequence[float], n_components: int) -> Iterator[Optimum]:
    """Yield the W with W^T W = I that minimizes the simple contrastive loss tr(W^T (E[z] E[z]^T - S) W).

    Its columns are the top eigenvectors of S - E[z] E[z]^T. Under the constraint, Tikhonov's penalty is constant, so
    that the optimum is the same for all ridges. A bias does not change the loss: it adds |γ|^2 + 2 γ^T E[f] to both
    terms, which are subtracted from each other.
    """
    values, V = top_eigenpairs(stats.cross - torch.outer(stats.mean, stats.mean), n_components)
    for ridge in ridges:
        yield Optimum(V, values, ridge, torch.zeros_like(V[0]))


def spectral_contrastive_loss(stats: Statistics, W: Tensor, bias: Tensor | None = None) -> float:
    """Return the spectral contrastive loss -2 tr E[f f+^T] + |E[f f^T]|^2 of f = W^T z + γ from the moments of z."""
    return float(
        -2.0 * _product(stats.cross, stats, W, bias).trace() + _product(stats.second, stats, W, bias).square().sum()
    )


def kernel_pca_loss(stats: Statistics, W: Tensor, bias: Tensor | None = None) -> float:
    """Return the loss of kernel PCA, E |φ|^2 - 2 tr(C) + tr(W^T W C) with C = W^T Σ W; the bias has no effect."""
    C = W.T @ stats.second @ W
    return float(stats.diagonal - 2.0 * C.trace() + ((W.T @ W) * C).sum())


def simple_contrastive_loss(stats: Statistics, W: Tensor, bias: Tensor | None = None) -> float:
    """Return the simple contrastive loss |W^T E[z]|^2 - tr(W^T S W); the bias has no effect."""
    return float((W.T @ stats.mean).square().sum() - ((stats.cross @ W) * W).sum())


def _product(moment: Tensor, stats: Statistics, W: Tensor, bias: Tensor | None) -> Tensor:
    """Return E[f f'^T] for f = W^T z + γ from the moment E[z z'^T]."""
    C = W.T @ moment @ W
    if bias is None:
        return C
    shift = torch.outer(W.T @ stats.mean, bias)
    return C + shift + shift.T + torch.outer(bias, bias)
