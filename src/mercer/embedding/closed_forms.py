"""The exact optima of three self-supervised losses on landmarks, in whitened coordinates (f = W^T z + γ, A = B W)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mercer.embedding.moments import Statistics
from mercer.linalg import generalized_eigenpairs, top_eigenpairs

REGULARIZERS = ("covariance", "tikhonov")


class Optimum(NamedTuple):
    """The coefficients W of shape (r, h) at a ridge, the eigenvalues that rank their columns, and γ of shape (h,)."""

    W: Tensor
    eigenvalues: Tensor
    ridge: float
    bias: Tensor


def spectral_contrastive_optima(
    stats: Statistics, ridges: Sequence[float], n_components: int, regularizer: str = "covariance"
) -> Iterator[Optimum]:
    """Yield, for each ridge λ, the W that minimizes a regularized spectral contrastive loss.

    With F = W W^T the loss is -2 tr(F S) + tr(F Σ F Σ). "tikhonov" adds λ |W|^2, which takes S to S - λ/2 I;
    "covariance" replaces Σ by Σ + λ I, so that directions with little variance must be all the more consistent between
    views. Either way what is left is |Σ^1/2 F Σ^1/2 - N|^2 with N = Σ^-1/2 S Σ^-1/2 up to a constant, and F is the best
    positive approximation of N of rank h: its top eigenpairs (ρ > 0, v) give W = Σ^-1/2 V diag(√ρ).

    O(r^3) once for Σ, and the top h eigenpairs of an (r, r) matrix a ridge. A single ridge needs no eigenvectors of Σ:
    the same W is that of the pencil S v = ρ (Σ + λ I) v, for which a Cholesky factor will do.
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
        # Where no row varies, Σ has no inverse root and the loss no say.
        root = torch.where(scales > floor, scales.clamp(min=1e-300).rsqrt(), 0.0)
        N = root[:, None] * N * root
        rho, V = top_eigenpairs((N + N.T) / 2, n_components)
        positive = rho > 0
        W = Q @ (root[:, None] * V[:, positive]) * rho[positive].sqrt()
        yield Optimum(W, rho[positive], ridge, torch.zeros_like(W[0]))


def kernel_pca_optima(stats: Statistics, ridges: Sequence[float], n_components: int) -> Iterator[Optimum]:
    """Yield, for each ridge λ, the W that minimizes the loss of kernel principal components plus λ |W|^2.

    The columns of W are the top eigenvectors of Σ, eigenvalues μ, each scaled by sqrt(max(0, 1 - λ / (2 μ))).
    """
    mu, V = top_eigenpairs(stats.second, n_components)
    for ridge in ridges:
        kept = mu > max(0.5 * ridge, len(V) * torch.finfo(mu.dtype).eps * float(mu[0]))
        W = V[:, kept] * (1.0 - 0.5 * ridge / mu[kept]).sqrt()
        yield Optimum(W, mu[kept], ridge, torch.zeros_like(W[0]))


def simple_contrastive_optima(stats: Statistics, ridges: Sequence[float], n_components: int) -> Iterator[Optimum]:
    """Yield the W with W^T W = I that minimizes the simple contrastive loss tr(W^T (E[z] E[z]^T - S) W).

    Its columns are the top eigenvectors of S - E[z] E[z]^T. Under the constraint Tikhonov's term is a constant, so that
    all ridges have one optimum; and a bias changes nothing, since both terms of the loss gain |γ|^2 + 2 γ^T E[f].
    """
    values, V = top_eigenpairs(stats.cross - torch.outer(stats.mean, stats.mean), n_components)
    for ridge in ridges:
        yield Optimum(V, values, ridge, torch.zeros_like(V[0]))


def spectral_contrastive_loss(stats: Statistics, W: Tensor, bias: Tensor | None = None) -> float:
    """Return -2 tr E[f f+^T] + |E[f f^T]|^2: the loss of f = W^T z + γ from the moments of z."""
    return float(
        -2.0 * _product(stats.cross, stats, W, bias).trace() + _product(stats.second, stats, W, bias).square().sum()
    )


def kernel_pca_loss(stats: Statistics, W: Tensor, bias: Tensor | None = None) -> float:
    """Return E |φ|^2 - 2 tr(C) + tr(W^T W C) with C = W^T Σ W; no bias has a place in it."""
    C = W.T @ stats.second @ W
    return float(stats.diagonal - 2.0 * C.trace() + ((W.T @ W) * C).sum())


def simple_contrastive_loss(stats: Statistics, W: Tensor, bias: Tensor | None = None) -> float:
    """Return |W^T E[z]|^2 - tr(W^T S W), whatever the bias."""
    return float((W.T @ stats.mean).square().sum() - ((stats.cross @ W) * W).sum())


def _product(moment: Tensor, stats: Statistics, W: Tensor, bias: Tensor | None) -> Tensor:
    """Return E[f f'^T] of f = W^T z + γ from E[z z'^T]."""
    C = W.T @ moment @ W
    if bias is None:
        return C
    shift = torch.outer(W.T @ stats.mean, bias)
    return C + shift + shift.T + torch.outer(bias, bias)
