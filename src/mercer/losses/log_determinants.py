"""Log determinants of I plus weighted sums of outer products, for many weightings at once, with their gradients."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mercer.blocks import row_slices, rows_per_block
from mercer.linalg import threads_for

# Outer products are symmetric: the products w_a w_b are computed for a in one strip of columns and b up to the strip's
# end. At d = 128, strips of 16 columns need 56 % of all products. Narrower strips are not faster, since the matrix
# products become too small, and strips of 32 take 15 % longer.
STRIP = 16


def gram_log_determinant(W: Tensor) -> Tensor:
    """Return log det(I + W^T W) = log det(I + W W^T), a scalar.

    Parameters
    ----------
    W : tensor of shape (n, d)

    Notes
    -----
    O(n d q + q^3) time with q = min(n, d). The gradient is 2 W (I + W^T W)^-1 = 2 (I + W W^T)^-1 W.
    """
    return _Gram.apply(W)


def weighted_log_determinants(W: Tensor, V: Tensor, s: Tensor) -> Tensor:
    """Return sum_j s_j log det(I + sum_i V_ij w_i w_i^T), a scalar.

    Parameters
    ----------
    W : tensor of shape (n, d)
        Its rows are the w_i.
    V : tensor of shape (n, m)
        The weights V_ij, which must not be negative.
    s : tensor of shape (m,)

    Notes
    -----
    Let E_j be the inverse of the matrix of column j. The gradient is 2 sum_j s_j V_ij E_j w_i with respect to w_i,
    s_j w_i^T E_j w_i with respect to V_ij, and the log determinant with respect to s_j. The gradients are computed
    together with the value, up to the factor of the backward pass, so that no E_j is stored. All sums are matrix
    products of V or E with the products w_a w_b for b <= a, which halves the work.

    O(m n q^2 + m q^3) time with q = min(n, d), and O(n m) memory in addition to blocks of
    `mercer.blocks.WORKING_MEMORY`. For n = m = 512 and d = 128 in float32 the peak is 61 MB; all columns at once would
    take 126 MB and no less time.
    """
    if len(W) < W.shape[1]:
        # The rows are rotated into their span, which has fewer dimensions. All w_i and E_j w_i are in this span, so the
        # rotation can be a constant of the gradient, which is rotated back by autograd.
        W = W @ torch.linalg.qr(W.detach().T).Q
    return _Weighted.apply(W, V, s)


class _Gram(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, W: Tensor) -> Tensor:
        ctx.wide = len(W) < W.shape[1]
        M = W @ W.T if ctx.wide else W.T @ W
        M.diagonal().add_(1.0)
        inverse, log_determinant = _factored(M, ctx.needs_input_grad[0])
        ctx.save_for_backward(W, inverse)
        return log_determinant

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        W, inverse = ctx.saved_tensors
        return 2.0 * g * (inverse @ W if ctx.wide else W @ inverse)


class _Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, W: Tensor, V: Tensor, s: Tensor) -> Tensor:
        d, m = W.shape[1], V.shape[1]
        for_W, for_V, _ = ctx.needs_input_grad
        dW = torch.zeros_like(W) if for_W else None
        dV = torch.zeros_like(V) if for_V else None
        log_determinants = torch.empty_like(s)
        # 8 matrices for each column: the sums, their factors and inverses, LAPACK's copies and the terms of the sums.
        for some in row_slices(m, rows_per_block(m, 8 * d * d * W.element_size())):
            E, log_determinants[some] = _factored(_one_plus_sums(W, V[:, some]), for_W or for_V)
            if E is not None:
                _add_gradients(W, V[:, some] * s[some], E, dW, None if dV is None else dV[:, some])
        if dV is not None:
            dV *= s
        ctx.save_for_backward(dW, dV, log_determinants)
        return s @ log_determinants

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor]:
        dW, dV, ds = ctx.saved_tensors
        return None if dW is None else g * dW, None if dV is None else g * dV, g * ds


def _one_plus_sums(W: Tensor, V: Tensor) -> Tensor:
    """Return I + sum_i V_ij w_i w_i^T for all j, of shape (m, d, d); only the lower triangles are valid."""
    d, m = W.shape[1], V.shape[1]
    M = W.new_zeros(m, d, d)
    for rows in _rows(W):
        w, v = W[rows], V[rows]
        for strip in row_slices(d, STRIP):
            M[:, strip, : strip.stop] += (v.T @ _products(w, strip)).view(m, -1, strip.stop)
    M.diagonal(dim1=1, dim2=2).add_(1.0)
    return M


def _factored(M: Tensor, with_inverse: bool) -> tuple[Tensor | None, Tensor]:
    """Return the inverses (None unless asked for) and log determinants of matrices given by their lower triangles."""
    # Two threads would synchronize hundreds of times for each small matrix. On a busy machine they would wait a hundred
    # times longer than they compute.
    with threads_for(M.shape[-1]):
        lower = torch.linalg.cholesky_ex(M).L
        inverse = torch.cholesky_inverse(lower) if with_inverse else None
    return inverse, 2.0 * lower.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)


def _add_gradients(W: Tensor, U: Tensor, E: Tensor, dW: Tensor | None, dV: Tensor | None) -> None:
    """Add 2 sum_j U_ij E_j w_i to row i of dW, and w_i^T E_j w_i to entry (i, j) of dV, unless these are None."""
    m, d, _ = E.shape
    for strip in row_slices(d, STRIP):
        E_strip = E[:, strip, : strip.stop].reshape(m, -1)
        left = strip.start
        for rows in _rows(W):
            w = W[rows]
            if dV is not None:
                dV[rows] += _products(w, strip, twice=left) @ E_strip.T
            if dW is not None:
                S = (U[rows] @ E_strip).view(len(w), -1, strip.stop)
                dW[rows, strip] += 2.0 * (S @ w[:, : strip.stop, None])[:, :, 0]
                dW[rows, :left] += 2.0 * (w[:, None, strip] @ S[:, :, :left])[:, 0]


def _products(w: Tensor, strip: slice, twice: int = 0) -> Tensor:
    """Return w_ia w_ib for a in the strip and b up to its end, for each row i; those of the first `twice` b doubled."""
    other = w[:, : strip.stop]
    if twice:
        other = torch.cat([2.0 * other[:, :twice], other[:, twice:]], dim=1)
    return (w[:, strip, None] * other[:, None]).flatten(1)


def _rows(W: Tensor) -> Iterator[slice]:
    n, d = W.shape
    return row_slices(n, rows_per_block(n, 2 * STRIP * d * W.element_size()))
