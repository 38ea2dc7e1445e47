"""Redundancy reduction between views, Barlow Twins (Zbontar et al. 2021; krepes, section 3)."""

from itertools import combinations

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.losses.directions import unit
from mercer.losses.pairs import check_views

# A column whose variation is below this many units of rounding counts as constant.
ROUNDING_UNITS = 10.0


def barlow_twins(*views: Tensor, off_diagonal: float = 0.0051, center: bool = True) -> Tensor:
    """Return sum_i (1 - C_ii)^2 + λ sum_{i != j} C_ij^2, where C holds the correlations between columns of two views.

    C_ij = sum_b z_bi z'_bj / (sqrt(sum_b z_bi^2) sqrt(sum_b z'_bj^2)). The loss is small if each column is the same in
    both views and uncorrelated with all other columns. For p > 2 views it is the mean over pairs of views.

    Parameters
    ----------
    *views : tensors of shape (n, h)
        The embeddings of two or more views, n >= 2; row i of each belongs to sample i.
    off_diagonal : float, default=0.0051
        λ. The default is that of the authors' code. Their paper rounds it to 5e-3, and krepes searches [1e-5, 100].
    center : bool, default=True
        Whether columns are first centered over the batch, as by the authors. krepes prints C without centering; a
        constant column, which carries no information, then has the correlation 1 with itself.

    Notes
    -----
    O(p^2 n h^2) time. A constant column has no correlations. It counts as uncorrelated with all columns, including
    itself, and gets no gradient. The authors' code adds 1e-5 to the variances instead, but the variances of a kernel
    embedding may well be smaller than that.
    """
    check_views(views, min_rows=2)
    check_number("off_diagonal", off_diagonal, at_least=0.0)
    columns = [unit_columns(view, center) for view in views]
    losses = [_redundancy(a.T @ b, off_diagonal) for a, b in combinations(columns, 2)]
    return torch.stack(losses).mean()


def unit_columns(z: Tensor, center: bool) -> Tensor:
    """Return the columns of z scaled to length 1 (after centering, if asked for); constant ones become 0."""
    z = z / _positive(z.detach().abs().amax(dim=0))
    if center:
        z = z - z.mean(dim=0)
        noise = ROUNDING_UNITS * torch.finfo(z.dtype).eps * len(z) ** 0.5
        # What is left of a constant column is rounding errors. Scaled to length 1, they would look like a correlation
        # and have an enormous gradient.
        z = torch.where(torch.linalg.vector_norm(z.detach(), dim=0) > noise, z, 0.0)
    return unit(z, dim=0)


def _positive(scale: Tensor) -> Tensor:
    return torch.where(scale > torch.finfo(scale.dtype).tiny, scale, 1.0)


def _redundancy(C: Tensor, off_diagonal: float) -> Tensor:
    diagonal = C.diagonal()
    return (1.0 - diagonal).square().sum() + off_diagonal * (C - torch.diag(diagonal)).square().sum()
