"""Maximal coding rate reduction, MCR2 (Yu et al. 2020; manifold linearizing and clustering, equations 1 and 2)."""

from torch import Tensor

from mercer.losses.coding_rate import class_coding_rate, coding_rate
from mercer.losses.directions import unit


def mcr2(Z: Tensor, membership: Tensor, *, epsilon: float) -> Tensor:
    """Return R_c - R, to be minimized: the coding rate of the features class by class minus that of all features.

    The authors maximize R - R_c, which is never negative. At its maximum, the features of each class are spread evenly
    over a subspace, and the subspaces of different classes are orthogonal.

    Parameters
    ----------
    Z : tensor of shape (n, d)
        The features, one row for each sample. Rows are scaled to length 1, as the authors require; a row of zeros stays
        zero.
    membership : tensor of shape (n,) of whole numbers, or (n, k)
        The class of each sample, or the share of each class in each sample; see `class_coding_rate`.
    epsilon : float
        ε, the precision of the code. The authors use ε^2 = 0.5 for labeled images.

    Returns
    -------
    R_c - R, a scalar, with a gradient in Z and in a membership of shares

    Notes
    -----
    O(n d^2 + k d^3) time for classes, O(k n q^2 + k q^3) with q = min(n, d) for shares.
    """
    Z = unit(Z, dim=1)
    return class_coding_rate(Z, membership, epsilon=epsilon) - coding_rate(Z, epsilon=epsilon)
