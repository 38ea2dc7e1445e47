"""Neural manifold clustering and embedding, NMCE (Li et al. 2022), for memberships of points in clusters."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.losses.directions import unit
from mercer.losses.mcr2 import mcr2
from mercer.losses.pairs import check_views
from mercer.losses.view_coding_rate import mean_cosine_size


def nmce(views: Sequence[Tensor], memberships: Sequence[Tensor], *, epsilon: float, agreement: float = 200.0) -> Tensor:
    """Return R_c - R - λ E |z^T z'|, to be minimized over features and memberships.

    R_c - R is `mcr2` of the mean features and the mean membership over the views, with a membership that is learned
    too (equation 2 of the paper of MLC, which compares itself with this method). The last term makes the views of a
    sample agree. The mean features are scaled to rows of length 1.

    Parameters
    ----------
    views : sequence of two or more tensors of shape (n, d)
        The features of each view; row i of each belongs to sample i. Rows are scaled to length 1.
    memberships : sequence of as many tensors of shape (n, k)
        For each view, the share of each cluster in each sample. Rows sum to 1, as after a softmax.
    epsilon : float
        ε, the precision of the code. The authors' code uses ε^2 = 0.5; the comparison in Table 6 uses 0.2.
    agreement : float, default=200.0
        λ. The authors use 100 with rates that are halved. They use the cosine itself instead of its absolute value, as
        in `view_coding_rate`; the two are the same unless a cosine is negative.

    Notes
    -----
    O(k n q^2 + k q^3 + p^2 n d) time with q = min(n, d), p views.
    """
    check_views(views)
    if len(views) != len(memberships):
        raise ValueError(f"there are {len(views)} views and {len(memberships)} memberships: each view needs one.")
    check_views(memberships)
    agreement = check_number("agreement", agreement, at_least=0.0)
    directions = unit(torch.stack(list(views)), dim=2)
    mean_membership = torch.stack(list(memberships)).mean(dim=0)
    return mcr2(directions.mean(dim=0), mean_membership, epsilon=epsilon) - agreement * mean_cosine_size(directions)
