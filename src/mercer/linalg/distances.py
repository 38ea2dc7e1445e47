"""Squared Euclidean distances by one matrix product; small ones, which lose their digits, are recomputed on request."""

from collections.abc import Callable

import torch
from torch import Tensor

# Entries below this many rounding errors of the norms are recomputed from the differences of the rows.
NOISE_UNITS = 128.0
# How many numbers of such differences are held in memory at once.
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

    The expansion |x|^2 + |z|^2 - 2 x.z costs one matrix product, but it loses all digits of a distance that is below
    the rounding error of the norms: in float32, two equal rows of norm 5 come out some 4e-3 apart. If `differences` is
    given, such entries (those of equal rows among them) are computed again from the differences. Equal rows are then
    exactly 0 apart, and the distances of near ones are right to a few digits.

    Parameters
    ----------
    X : tensor of shape (n, d)
    Z : tensor of shape (m, d)
    x_norms, z_norms : tensors of shape (n,) and (m,), optional
        The squared norms of the rows, if the caller has them already.
    differences : callable, optional
        (i, j) -> the rows x_i - z_j for index tensors i and j of equal length.
    out : tensor of shape (n, m), optional
        The array that the result is written into.

    Notes
    -----
    O(nmd) time and one (n, m) array. Rows centered by the caller lose fewer digits.
    """
    x_norms = squared_norms(X) if x_norms is None else x_norms
    z_norms = squared_norms(Z) if z_norms is None else z_norms
    # The sums of the norms are written first and the product is added to them: this is one pass less over the result
    # than adding the norms to the product.
    r2 = torch.add(x_norms[:, None], z_norms, out=out)
    r2 = r2.addmm_(X, Z.T, alpha=-2.0).clamp_(min=0.0)
    is_large = not bool(torch.isfinite(x_norms.detach().sum() + z_norms.detach().sum()))
    if differences is not None and r2.numel():
        _recompute_small(r2, x_norms, z_norms, differences, width=X.shape[1])
    if is_large:
        _replace_overflown(r2, X, Z)
    return r2


def _replace_overflown(r2: Tensor, X: Tensor, Z: Tensor) -> None:
    """Replace the entries of `r2` whose squares overflowed, in place: by 0 for equal rows, else by the largest number.

    An infinite norm minus an infinite product is NaN. With the largest number in its place, kernels of the distance are
    0 and not NaN.
    """
    rows, columns = torch.nonzero(~torch.isfinite(r2.detach()), as_tuple=True)
    far = torch.finfo(r2.dtype).max
    step = max(1, CHUNK_NUMBERS // max(1, X.shape[1]))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        r2[i, j] = torch.full_like(r2[i, j], far).masked_fill((X[i] == Z[j]).all(dim=1), 0.0)


def _recompute_small(
    r2: Tensor, x_norms: Tensor, z_norms: Tensor, differences: Callable[[Tensor, Tensor], Tensor], width: int
) -> None:
    """Compute again, in place, the entries of `r2` that are within the rounding error of the expansion."""
    unit = NOISE_UNITS * torch.finfo(r2.dtype).eps
    noise = (unit * (x_norms + z_norms.max())).detach()
    rows, columns = torch.nonzero(r2.detach() <= noise[:, None], as_tuple=True)
    # The first comparison used the largest norm of Z because that is quick. If an outlier has it, most of the entries
    # found are accurate enough; the second comparison uses the norm of each entry's own row.
    near = r2.detach()[rows, columns] <= unit * (x_norms.detach()[rows] + z_norms.detach()[columns])
    rows, columns = rows[near], columns[near]
    step = max(1, CHUNK_NUMBERS // max(1, width))
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        r2[i, j] = squared_norms(differences(i, j))
