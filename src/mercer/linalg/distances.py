"""Squared Euclidean distances by one matrix product, with the digits that it loses put back where asked."""

from collections.abc import Callable

import torch
from torch import Tensor

# Entries below this many units of rounding error are worked out again from the differences.
NOISE_UNITS = 128.0
# Numbers held at once while that is done.
CHUNK_NUMBERS = 2**20


def squared_norms(X: Tensor) -> Tensor:
    """Return |x|^2 for each row x."""
    return torch.linalg.vecdot(X, X)


def squared_distances(
    X: Tensor,
    Z: Tensor,
    x_norms: Tensor | None = None,
    z_norms: Tensor | None = None,
    *,
    differences: Callable[[Tensor, Tensor], Tensor] | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return |x_i - z_j|^2 for all pairs of rows, never negative.

    The expansion |x|^2 + |z|^2 - 2 x.z costs one matrix product, and loses every digit of a distance that is
    below the rounding error of the norms: in float32 two equal rows of norm 5 come out some 4e-3 apart. Where the
    caller gives `differences`, such entries (equal rows among them) are computed again from them, so that equal
    rows are exactly 0 apart and near ones have the right distance to a few digits.

    Parameters
    ----------
    X : tensor of shape (n, d)
    Z : tensor of shape (m, d)
    x_norms, z_norms : tensors of shape (n,) and (m,), optional
        The squared norms of the rows, where the caller has them.
    differences : callable, optional
        (i, j) -> the rows x_i - z_j for index tensors i and j.
    out : tensor of shape (n, m), optional
        Where the result goes.

    Notes
    -----
    O(nmd) time and one (n, m) array. Rows centered by the caller lose fewer digits.
    """
    x_norms = squared_norms(X) if x_norms is None else x_norms
    z_norms = squared_norms(Z) if z_norms is None else z_norms
    # The sum of the norms is written first, for the product to be added onto: one pass less than adding them to it.
    r2 = torch.add(x_norms[:, None], z_norms, out=out)
    r2 = r2.addmm_(X, Z.T, alpha=-2.0).clamp_(min=0.0)
    is_large = not bool(torch.isfinite(x_norms.detach().sum() + z_norms.detach().sum()))
    if differences is not None and r2.numel():
        _mend_small(r2, x_norms, z_norms, differences, width=X.shape[1])
    if is_large:
        _mend_large(r2, X, Z)
    return r2


def _mend_large(r2: Tensor, X: Tensor, Z: Tensor) -> None:
    """Put the largest number, in place, where squares were too large: equal rows are 0 apart, all others far away.

    Infinite norms less an infinite product are NaN; with the largest number in their place kernels are 0, not NaN.
    """
    rows, columns = torch.nonzero(~torch.isfinite(r2.detach()), as_tuple=True)
    far = torch.finfo(r2.dtype).max
    step = max(1, CHUNK_NUMBERS // max(1, X.shape[1]))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        r2[i, j] = torch.full_like(r2[i, j], far).masked_fill((X[i] == Z[j]).all(dim=1), 0.0)


def _mend_small(
    r2: Tensor, x_norms: Tensor, z_norms: Tensor, differences: Callable[[Tensor, Tensor], Tensor], width: int
) -> None:
    """Compute again, in place, the entries of `r2` that are within the rounding error of the expansion."""
    unit = NOISE_UNITS * torch.finfo(r2.dtype).eps
    noise = (unit * (x_norms + z_norms.max())).detach()
    rows, columns = torch.nonzero(r2.detach() <= noise[:, None], as_tuple=True)
    # The largest norm made the first cut a quick one; where it is an outlier's, most of what it let through is fine.
    near = r2.detach()[rows, columns] <= unit * (x_norms.detach()[rows] + z_norms.detach()[columns])
    rows, columns = rows[near], columns[near]
    step = max(1, CHUNK_NUMBERS // max(1, width))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        r2[i, j] = squared_norms(differences(i, j))
