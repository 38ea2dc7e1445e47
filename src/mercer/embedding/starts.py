"""The initial parameters of gradient steps (krepes, section 3.1)."""

import torch
from torch import Tensor

from mercer.embedding.exact import Exact
from mercer.embedding.moments import Statistics
from mercer.embedding.problem import Problem
from mercer.losses import orthonormal

STARTS = ("standardized", "principal", "random", "spectral")


def started(start: str, problem: Problem, stats: Statistics, is_constrained: bool) -> tuple[Tensor, Tensor]:
    """Return the initial W, of shape (r, h) in white coordinates, and the initial γ.

    "principal" gives the kernel principal components of the landmarks; in white coordinates these are the first columns
    of the identity. "standardized" gives the same, and `unit_scale` scales them later. "random" gives normal numbers,
    scaled so that every component has variance 1 over the rows. "spectral" gives the exact optimum of the spectral
    contrastive loss, with random columns if it has fewer than h.

    Parameters
    ----------
    start : {"standardized", "principal", "random", "spectral"}
    problem : Problem
    stats : Statistics
        The statistics of all rows.
    is_constrained : bool
        Whether the columns of W must be orthonormal.
    """
    r, h = len(stats.mean), problem.n_components
    bias = torch.zeros(h).to(stats.mean)
    if start in ("principal", "standardized"):
        return torch.eye(r, h).to(stats.mean), bias
    W = random_columns(stats, h, problem.seed)
    if start == "spectral":
        optimum = Exact().solve(problem._replace(loss="spectral_contrastive"))
        found = optimum.W.shape[1]
        W = torch.cat([optimum.W, W[:, found:]], dim=1)
        bias[:found] = optimum.bias
    return (orthonormal(W) if is_constrained else W), bias


def unit_scale(problem: Problem, W: Tensor) -> float:
    """Return the factor by which W must be multiplied for the outputs W^T z to have mean variance 1 over the landmarks.

    It is 1 if the outputs do not vary. Principal components have a variance of a hundredth or less, which depends on
    the kernel. A loss that asks for outputs of variance 1, as VICReg does, would at first only increase the variance,
    and small steps would never improve anything else.
    """
    outputs = problem.centers.gram() @ problem.halves.B.to(torch.float64) @ W.to(torch.float64)
    variance = float(outputs.var(dim=0, correction=0).mean())
    return variance**-0.5 if variance > 0 else 1.0


def random_columns(stats: Statistics, n_components: int, seed: int) -> Tensor:
    """Return normal numbers, of shape (r, h), scaled so that every output W^T z has variance 1 over the rows.

    Kaiming's rule, a variance of 2 / r, assumes inputs of variance 1; the variance of kernel features depends on the
    kernel.
    """
    shape = len(stats.mean), n_components
    W = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(stats.mean)
    covariance = stats.second - torch.outer(stats.mean, stats.mean)
    variances = ((covariance @ W) * W).sum(dim=0)
    return W / torch.where(variances > 0, variances, 1.0).sqrt()
