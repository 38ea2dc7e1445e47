"""Neural manifold clustering and embedding, NMCE (Li et al. 2022): memberships of points to clusters."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.losses.directions import unit
from mercer.losses.mcr2 import mcr2
from mercer.losses.pairs import check_views
from mercer.losses.view_coding_rate import mean_cosine_size


def nmce(views: Sequence[Tensor], memberships: Sequence[Tensor], *, epsilon: float, agreement: float = 200.0) -> Tensor:
    """Return R_c - R of the mean view and membership, less λ E |z^T z'|: to be minimized over both.

    It is `mcr2` with a membership that is learned too (equation 2 of the paper of MLC, which compares itself with it),
    and views of a sample asked to agree. The mean of the views is scaled to rows of length 1.

    Parameters
    ----------
    views : sequence of two or more tensors of shape (n, d)
        The features of each view; row i of each belongs to sample i. They enter by their directions alone.
    memberships : sequence of as many tensors of shape (n, k)
        The share of each cluster in each sample, by each view: rows sum to 1, as by a softmax.
    epsilon : float
        ε. The authors' code takes ε^2 = 0.5; 0.2 in the comparison of Table 6.
    agreement : float, default=200.0
        λ. Theirs is 100, beside rates that are halved. They take the cosine itself; its size, as `view_coding_rate`
        has it, is the same where views agree at all.

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
