"""Redundancy reduction between views, Barlow Twins (Zbontar et al. 2021; krepes, section 3)."""

from itertools import combinations

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.losses.directions import unit
from mercer.losses.pairs import check_views

# A column that varies by less than this many units of rounding is constant.
ROUNDING_UNITS = 10.0


def barlow_twins(*views: Tensor, off_diagonal: float = 0.0051, center: bool = True) -> Tensor:
    """Return sum_i (1 - C_ii)^2 + λ sum_{i != j} C_ij^2, C the correlations between the columns of two views.

    C_ij = sum_b z_bi z'_bj / (sqrt(sum_b z_bi^2) sqrt(sum_b z'_bj^2)): a column is to be the same in both views, and
    unlike all other columns. For p > 2 views it is the mean over pairs of views.

    Parameters
    ----------
    *views : tensors of shape (n, h)
        The embeddings of two or more views, n >= 2; row i of each belongs to sample i.
    off_diagonal : float, default=0.0051
        λ. That of the authors' code; their paper rounds it to 5e-3, and krepes searches [1e-5, 100].
    center : bool, default=True
        Whether columns are centered over the batch first, as the authors have it. krepes prints C without, and a column
        that is constant, and says nothing, then agrees with itself perfectly.

    Notes
    -----
    O(p^2 n h^2) time. A constant column, which has no correlations, counts as uncorrelated with all, itself included,
    and gets no gradient. The authors' code adds 1e-5 to the variances instead, which the columns of a kernel embedding
    may well be below.
    """
    check_views(views, min_rows=2)
    check_number("off_diagonal", off_diagonal, at_least=0.0)
    columns = [unit_columns(view, center) for view in views]
    losses = [_redundancy(a.T @ b, off_diagonal) for a, b in combinations(columns, 2)]
    return torch.stack(losses).mean()


def unit_columns(z: Tensor, center: bool) -> Tensor:
    """Return columns of length 1, of 0 where there is nothing to scale."""
    z = z / _positive(z.detach().abs().amax(dim=0))
    if center:
        z = z - z.mean(dim=0)
        noise = ROUNDING_UNITS * torch.finfo(z.dtype).eps * len(z) ** 0.5
        # Rounding errors have a direction too, which looks like a correlation and has an enormous gradient.
        z = torch.where(torch.linalg.vector_norm(z.detach(), dim=0) > noise, z, 0.0)
    return unit(z, dim=0)


def _positive(scale: Tensor) -> Tensor:
    return torch.where(scale > torch.finfo(scale.dtype).tiny, scale, 1.0)


def _redundancy(C: Tensor, off_diagonal: float) -> Tensor:
    diagonal = C.diagonal()
    return (1.0 - diagonal).square().sum() + off_diagonal * (C - torch.diag(diagonal)).square().sum()
