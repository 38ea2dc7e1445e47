"""Where steps begin (krepes, section 3.1)."""

import torch
from torch import Tensor

from mercer.embedding.exact import Exact
from mercer.embedding.moments import Statistics
from mercer.embedding.problem import Problem
from mercer.losses import orthonormal

STARTS = ("standardized", "principal", "random", "spectral")


def started(start: str, problem: Problem, stats: Statistics, is_constrained: bool) -> tuple[Tensor, Tensor]:
    """Return W to start from, of shape (r, h), and γ.

    "principal" are the kernel principal components of the landmarks, which in coordinates in which these are white are
    the first columns of the identity; "standardized" are they at first, until `unit_scale` scales them. "random" are
    normal numbers, scaled so that every component has variance 1 over the rows. "spectral" is the exact optimum of the
    spectral contrastive loss, with random columns where it has fewer.
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
    """Return the factor that makes 1 of the mean variance of W^T z over the landmarks; 1 where they do not vary.

    Principal components have the variance that the kernel gives them, a hundredth or less: to a loss that asks for
    outputs of variance 1, as VICReg does, that is all there is to mend, and small steps never come to what matters.
    """
    outputs = problem.centers.gram() @ problem.halves.B.to(torch.float64) @ W.to(torch.float64)
    variance = float(outputs.var(dim=0, correction=0).mean())
    return variance**-0.5 if variance > 0 else 1.0


def random_columns(stats: Statistics, n_components: int, seed: int) -> Tensor:
    """Return normal numbers, of shape (r, h), scaled so that every output W^T z has variance 1 over the rows.

    Kaiming's rule, variance 2 / r, is made for inputs of variance 1; kernel features have what the kernel gives them.
    """
    shape = len(stats.mean), n_components
    W = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(stats.mean)
    covariance = stats.second - torch.outer(stats.mean, stats.mean)
    variances = ((covariance @ W) * W).sum(dim=0)
    return W / torch.where(variances > 0, variances, 1.0).sqrt()
