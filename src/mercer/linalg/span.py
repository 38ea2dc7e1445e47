"""Coordinates of a few rows with many columns in the space that they span; lengths and angles stay the same."""

import torch
from torch import Tensor


def in_row_span(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the coordinates of rows in their span, of shape (n, r), and an orthonormal basis of it, of shape (d, r).

    The rows have shape (n, d) with n < d. What does not change under rotations, such as distances, can be computed from
    the shorter coordinates. A QR decomposition takes a quarter of the time of an SVD; the SVD is used only if the rows
    are linearly dependent. O(n^2 d).
    """
    V, R = torch.linalg.qr(rows.T)
    pivots = R.diagonal().abs()
    if pivots.min() > rows.shape[1] * torch.finfo(rows.dtype).eps * pivots.max():
        return R.T.contiguous(), V
    _, s, Vt = torch.linalg.svd(rows, full_matrices=False)
    kept = s > rows.shape[1] * torch.finfo(rows.dtype).eps * s[0]
    V = Vt[kept].T.contiguous()
    return rows @ V, V
