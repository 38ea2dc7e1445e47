"""Lemma 1 by sampling: perturbed inputs are mapped, and the covariance of the outputs is compared with the lemma's."""

from typing import Any

import torch
from torch import Tensor
from torch.func import jacrev, vmap

from mercer.clustering.expression.ridge import regularized_inverse
from mercer.clustering.subspace.features import unit_rows

from .toy import toy_kernel, toy_points

RIDGE = 1.0
# The number and the length of the draws. They are short, since the lemma is a first-order expansion at the origin.
DRAWS, LENGTH = 4000, 1e-4


def reconstruction(X: Tensor) -> Any:
    """Return h(x) = X^T Q K Q k(x), self-expression mapped back to the data (appendix C), as a function of one x."""
    kernel = toy_kernel("gaussian")
    Q = regularized_inverse(kernel.matrix(X), RIDGE)
    alpha = X.T @ (Q - RIDGE * (Q @ Q))
    scale = 2.0 * float(kernel.bandwidth) ** 2

    def h(x: Tensor) -> Tensor:
        return alpha @ torch.exp(-(X - x).square().sum(dim=1) / scale)

    return h


def precision_root(J: Tensor, shrinkage: Tensor) -> Tensor:
    """Return (J^T J + shrinkage I)^-1/2, for a batch of Jacobians."""
    mu, V = torch.linalg.eigh(J.mT @ J)
    return (V / (mu.clamp(min=0.0) + shrinkage).sqrt()[..., None, :]) @ V.mT


def run_lemma(settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Draw z, map x = P(z)^1/2 z, and compare the covariance of the outputs with the lemma's and with the identity.

    `sampled` is the largest difference of an eigenvalue from mu / (mu + lambda), and `identity` the largest difference
    from 1. Lambda is given as a share of the largest mu.
    """
    X = unit_rows(torch.from_numpy(toy_points("as printed", False, seed)[0]))
    h = reconstruction(X)
    z = LENGTH * torch.randn(DRAWS, X.shape[1], dtype=X.dtype, generator=torch.Generator().manual_seed(seed))
    jacobians = vmap(jacrev(h))(z)
    origin = torch.zeros(X.shape[1], dtype=X.dtype)
    J = jacrev(h)(origin)
    mu = torch.linalg.eigvalsh(J.T @ J).clamp(min=0.0)
    measures = {}
    for shrinkage in settings["shrinkages"]:
        strength = shrinkage * mu[-1]
        moved = (precision_root(jacobians, strength) @ z[:, :, None])[:, :, 0]
        outputs = (vmap(h)(moved) - h(origin)) / LENGTH
        found = torch.linalg.eigvalsh(outputs.T @ outputs / DRAWS)
        measures[f"sampled {shrinkage:g}"] = float((found - mu / (mu + strength)).abs().max())
        measures[f"identity {shrinkage:g}"] = float((found - 1.0).abs().max())
    return measures
