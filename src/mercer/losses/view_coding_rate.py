"""The self-supervised initialization of manifold linearizing and clustering (Ding et al. 2023, equation 5)."""

from collections.abc import Sequence
from itertools import combinations

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.losses.coding_rate import coding_rate
from mercer.losses.directions import unit
from mercer.losses.pairs import check_views


def view_coding_rate(*views: Tensor, epsilon: float, agreement: float = 200.0) -> Tensor:
    """Return -R(mean of the views) - λ E |z^T z'|, to be minimized: samples spread out, and views of a sample agree.

    R is `coding_rate`, and z and z' are the features of two views of a sample, scaled to length 1. The paper maximizes
    R + λ E |z^T z'|. For p > 2 views the mean is over all views, and E is over samples and pairs of views.

    Parameters
    ----------
    *views : tensors of shape (n, d)
        The features of two or more views; row i of each belongs to sample i. Rows are scaled to length 1; a row of
        zeros stays zero.
    epsilon : float
        ε, the precision of the code. The authors use ε^2 = 0.2.
    agreement : float, default=200.0
        λ. The paper sums over samples, so that its λ is this one divided by n, and does not print its value. The code
        of NMCE, from which this initialization comes, takes a mean over samples and uses 100 for R / 2.

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
