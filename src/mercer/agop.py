"""Gradients of kernel predictors and their average outer product (AGOP), in closed form and by row blocks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, as_tensor, like_input, rows_per_block, walk
from mercer.kernels import Kernel
from mercer.kernels.base import block_numbers
from mercer.mahalanobis import Mahalanobis
from mercer.rows import sum_over_rows


def predictor_gradients(kernel: Kernel, X: Any, Z: Any, alpha: Any, *, working_memory: float = WORKING_MEMORY) -> Any:
    """Return the gradient of f(x) = sum_j alpha_j k(z_j, x) at each row of X.

    Parameters
    ----------
    kernel : Kernel
    X : array-like of shape (n, d)
        Where the gradients are taken.
    Z : array-like of shape (m, d)
        The centers of f.
    alpha : array-like of shape (m,) or (m, c)
        The coefficients of f, one column an output.
    working_memory : float, default=64.0
        MiB for the temporaries of one block.

    Returns
    -------
    gradients of shape (n, d), or (n, c, d) for c outputs

    Notes
    -----
    O(nmdc) time, O(nd) memory beside the blocks; no (n, m, d) array is formed. At x = z_j the Laplace kernel has a
    kink; the term of that center is taken as zero.
    """
    rows = X if hasattr(X, "shape") else as_tensor(X)
    z, columns, prepared, bytes_per_row = _prepare(kernel, rows, Z, alpha)
    gradients = [
        _block_gradients(kernel, x, prepared, columns)
        for _, (x,) in walk(
            [rows], bytes_per_row=bytes_per_row, working_memory=working_memory, dtype=z.dtype, device=z.device
        )
    ]
    result = torch.cat(gradients)
    return like_input(result[:, 0] if np.ndim(alpha) == 1 else result, X, Z, alpha)


def agop(
    kernel: Kernel,
    X: Any,
    Z: Any,
    alpha: Any,
    *,
    diagonal: bool = False,
    weights: Any = None,
    working_memory: float = WORKING_MEMORY,
) -> Any:
    """Return the average gradient outer product of f(x) = sum_j alpha_j k(z_j, x) over the rows of X.

    M = (1/n) sum_i sum_c grad f_c(x_i) grad f_c(x_i)^T: how much, and along which combinations of inputs, the
    predictor moves. It is the update of a recursive feature machine.

    Parameters
    ----------
    kernel, X, Z, alpha, working_memory
        As in `predictor_gradients`.
    diagonal : bool, default=False
        Return the diagonal of M alone, of shape (d,).
    weights : array-like of shape (n,), optional
        Weights of the rows in the average; equal by default.

    Returns
    -------
    matrix of shape (d, d), symmetric positive semi-definite; or its diagonal of shape (d,)

    Notes
    -----
    O(nmdc + ncd^2) time; memory as `working_memory` says, beside O(md) for the centers.
    """
    rows = X if hasattr(X, "shape") else as_tensor(X)
    mass = torch.ones(rows.shape[0]) if weights is None else as_tensor(weights)
    z, columns, _, bytes_per_row = _prepare(kernel, rows, Z, alpha)
    total, total_mass = sum_over_rows(
        _outer_products,
        (kernel, z, columns, diagonal),
        rows,
        mass,
        rows_a_block=rows_per_block(rows.shape[0], bytes_per_row, working_memory),
        dtype=z.dtype,
        device=z.device,
    )
    return like_input((total / total_mass).to(z.dtype), X, Z, alpha)


def _outer_products(
    kernel: Kernel, z: Tensor, alpha: Tensor, diagonal: bool
) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return (rows, their weights) -> the weighted sum of the outer products of their gradients, and of the weights."""
    prepared = kernel.prepare(z)

    def summed(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        G = _block_gradients(kernel, x, prepared, alpha).mul_(w.sqrt()[:, None, None]).flatten(0, 1)
        return (G.square_().sum(dim=0) if diagonal else G.T @ G), w.sum()

    return summed


def next_metric(
    kernel: Kernel,
    X: Tensor,
    centers: Tensor,
    alpha: Tensor,
    metric: str,
    weights: Tensor | None = None,
    working_memory: float = WORKING_MEMORY,
) -> Mahalanobis:
    """Return the average gradient outer product of the fit over the rows of X, or its diagonal, as a metric of trace d.

    It is the step from a fit to the next metric in a recursive feature machine. A fit without gradients (of a constant
    target) has nothing to say: the metric stays what it was.

    Parameters
    ----------
    kernel : Kernel
        With one metric.
    X : tensor of shape (n, d)
    centers : tensor of shape (m, d)
    alpha : tensor of shape (m,) or (m, c)
        The coefficients of the fit.
    metric : {"diagonal", "full"}
    weights : tensor of shape (n,), optional
        Of the rows in the average.
    working_memory : float, default=64.0
    """
    diagonal = metric == "diagonal"
    if not diagonal and len(X) * alpha[0].numel() < X.shape[1]:
        return _in_the_span(kernel, X, centers, alpha, weights, working_memory)
    M = agop(kernel, X, centers, alpha, diagonal=diagonal, weights=weights, working_memory=working_memory).cpu()
    learned = Mahalanobis.from_weights(M) if diagonal else Mahalanobis.from_matrix(M)
    return learned.normalized() if float(M.sum() if diagonal else M.trace()) > 0 else kernel.single_metric()


def _in_the_span(
    kernel: Kernel, X: Tensor, centers: Tensor, alpha: Tensor, weights: Tensor | None, working_memory: float
) -> Mahalanobis:
    """Return the same for fewer gradients than columns: a full metric of low rank, without a matrix of d^2 numbers."""
    gradients = predictor_gradients(kernel, X, centers, alpha, working_memory=working_memory)
    mass = gradients.new_ones(len(X)) if weights is None else weights
    G = ((mass / mass.sum()).sqrt()[:, None] * gradients.flatten(1)).reshape(-1, X.shape[1])
    return Mahalanobis.from_outer_products(G).normalized() if bool(G.any()) else kernel.single_metric()


def _prepare(kernel: Kernel, X: Any, Z: Any, alpha: Any) -> tuple[Tensor, Tensor, Any, int]:
    z = as_tensor(Z, device=X.device if isinstance(X, Tensor) else None)
    z = z.to(torch.promote_types(as_tensor(X[:0]).dtype, z.dtype))
    columns = as_tensor(alpha, dtype=z.dtype, device=z.device)
    columns = columns[:, None] if columns.ndim == 1 else columns
    if len(columns) != len(z):
        raise ValueError(f"alpha has {len(columns)} rows and Z has {len(z)}: f needs one coefficient a center.")
    bytes_per_row = (block_numbers(*z.shape) + 2 * columns.shape[1] * z.shape[1]) * z.element_size()
    return z, columns, kernel.prepare(z), bytes_per_row


def _block_gradients(kernel: Kernel, x: Tensor, prepared: Any, alpha: Tensor) -> Tensor:
    """Return the gradients at the rows x, of shape (n, c, d)."""
    if not kernel.has_closed_form_gradient:
        return _autograd_gradients(kernel, x, prepared, alpha)
    total: Tensor | None = None
    for term in kernel.gradient_terms(kernel.prepare(x, beside=prepared), prepared):
        gradients = term.metric.pull_back(term.sums(alpha), overwrite=True)
        total = gradients if total is None else total.add_(gradients)
    return x.new_zeros((len(x), alpha.shape[1], x.shape[1])) if total is None else total


def _autograd_gradients(kernel: Kernel, x: Tensor, prepared: Any, alpha: Tensor) -> Tensor:
    """Return the same by automatic differentiation, for kernels without gradient weights."""
    x = x.detach().clone().requires_grad_()
    with torch.enable_grad():
        predictions = kernel.values(kernel.prepare(x, beside=prepared), prepared) @ alpha
        if not predictions.requires_grad:
            raise TypeError(f"{kernel!r} is not differentiable by torch, so its predictor has no gradients.")
        gradients = [
            torch.autograd.grad(predictions[:, c].sum(), x, retain_graph=True)[0] for c in range(alpha.shape[1])
        ]
    return torch.stack(gradients, dim=1)
