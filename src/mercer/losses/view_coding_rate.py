"""The self-supervised start of manifold linearizing and clustering (Ding et al. 2023, equation 5)."""

from collections.abc import Sequence
from itertools import combinations

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.losses.coding_rate import coding_rate
from mercer.losses.directions import unit
from mercer.losses.pairs import check_views


def view_coding_rate(*views: Tensor, epsilon: float, agreement: float = 200.0) -> Tensor:
    """Return -R(mean of the views) - λ E |z^T z'|, to be minimized: samples spread out, views of a sample agree.

    R is `coding_rate`, z and z' are two views of a sample, of length 1. The sign before λ is that of the paper, which
    maximizes both terms. For p > 2 views the mean is over all views, and E over pairs of views as well.

    Parameters
    ----------
    *views : tensors of shape (n, d)
        The features of two or more views; row i of each belongs to sample i. They enter by their directions alone;
        one of zeros stays so.
    epsilon : float
        ε. The authors take ε^2 = 0.2.
    agreement : float, default=200.0
        λ. The paper sums over samples, so that its λ is this over n, and does not print it. The code of NMCE, where
        the start is from, takes a mean, and 100 beside R / 2.

    Notes
    -----
    O(p n d + n d q + q^3 + p^2 n d) time with q = min(n, d).
    """
    check_views(views)
    agreement = check_number("agreement", agreement, at_least=0.0)
    directions = unit(torch.stack(views), dim=2)
    return -coding_rate(directions.mean(dim=0), epsilon=epsilon) - agreement * mean_cosine_size(directions)


def mean_cosine_size(directions: Tensor | Sequence[Tensor]) -> Tensor:
    """Return the mean of |z^T z'| over samples and pairs of their views, each of shape (n, d) with rows of length 1."""
    return torch.stack([(a * b).sum(dim=1).abs().mean() for a, b in combinations(directions, 2)]).mean()
