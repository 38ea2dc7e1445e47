"""Manifold linearizing and clustering, MLC (Ding et al. 2023, equation 4)."""

import torch
from torch import Tensor

from mercer.checks import check_choice, check_number
from mercer.losses.coding_rate import coding_rate, pairwise_coding_rate
from mercer.losses.directions import unit

REGULARIZERS = ("squared", "entropy")


def mlc(Z: Tensor, membership: Tensor, *, epsilon: float, gamma: float = 0.05, regularizer: str = "squared") -> Tensor:
    """Which points belong together, and to which subspace? Return R_c - R + γ r(Π), to be minimized over Z and Π.

    The authors maximize R - R_c - γ r(Π). R is the coding rate of all features, and R_c is the mean rate if each point
    is coded together with the points like it (`pairwise_coding_rate`). The regularizer r is smallest for
    Π = 1 1^T / n. Without it the optimal Π is a permutation, in which every point is a cluster of its own.

    Parameters
    ----------
    Z : tensor of shape (n, d)
        The features, one row for each sample. Rows are scaled to length 1, as the authors require; a row of zeros stays
        zero.
    membership : tensor of shape (n, n)
        Π, a doubly stochastic matrix: `mercer.sinkhorn.doubly_stochastic` of C C^T / η, where C is the output of the
        cluster head.
    epsilon : float
        ε, the precision of the code. The authors use ε^2 = 0.1.
    gamma : float, default=0.05
        γ. The default is the authors' for r = |Π|^2 / 2.
    regularizer : {"squared", "entropy"}, default="squared"
        r(Π): |Π|^2 / 2, or the negative entropy sum_ij Π_ij log Π_ij of the authors' footnote 8.

    Returns
    -------
    R_c - R + γ r(Π), a scalar, with a gradient in Z and in Π

    Notes
    -----
    O(n^2 q^2 + n q^3) time with q = min(n, d), and O(n^2) memory in addition to blocks of 64 MiB. r grows with n while
    the rates do not: |Π|^2 is 1 for Π = 1 1^T / n and n for a permutation.
    """
    gamma = check_number("gamma", gamma, at_least=0.0)
    penalty = _squared if check_choice("regularizer", regularizer, REGULARIZERS) == "squared" else _negative_entropy
    Z = unit(Z, dim=1)
    loss = pairwise_coding_rate(Z, membership, epsilon=epsilon) - coding_rate(Z, epsilon=epsilon)
    return loss if gamma == 0.0 else loss + gamma * penalty(membership)


def _squared(P: Tensor) -> Tensor:
    return P.square().sum() / 2.0


def _negative_entropy(P: Tensor) -> Tensor:
    # At zero the derivative is -inf. It is replaced by the derivative at the smallest positive number.
    return (P * P.clamp(min=torch.finfo(P.dtype).tiny).log()).sum()
