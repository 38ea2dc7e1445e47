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
        The coefficients of f, with one column for each output.
    working_memory : float, default=64.0
        MiB for the temporaries of one block.

    Returns
    -------
    gradients of shape (n, d), or (n, c, d) for c outputs

    Notes
    -----
    O(nmdc) time, and O(ndc) memory for the result; no (n, m, d) array is formed. At x = z_j the Laplace kernel is not
    differentiable; the term of that center counts as zero there.
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

    M = (1/n) sum_i sum_c grad f_c(x_i) grad f_c(x_i)^T says how much the predictor changes, and along which
    combinations of inputs. It is the metric in the next step of a recursive feature machine.

    Parameters
    ----------
    kernel, X, Z, alpha, working_memory
        As in `predictor_gradients`.
    diagonal : bool, default=False
        Whether to return only the diagonal of M, of shape (d,).
    weights : array-like of shape (n,), optional
        The weights of the rows in the average; equal by default.

    Returns
    -------
    matrix of shape (d, d), symmetric positive semi-definite; or its diagonal of shape (d,)

    Notes
    -----
    O(nmdc + ncd^2) time. Memory of O(md) for the centers and O(d^2) for the result, beside the blocks.
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
    """Return a function of a block: (x, w) -> (the sum over rows of w grad f grad f^T, the sum of the weights w)."""
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
    """Return the average gradient outer product of a fit over the rows of X, or its diagonal, as a metric of trace d.

    This is how a recursive feature machine gets its next metric from a fit. If all gradients are zero, as for a
    constant target, the metric of the kernel is returned.

    Parameters
    ----------
    kernel : Kernel
        All its terms have the same metric.
    X : tensor of shape (n, d)
    centers : tensor of shape (m, d)
    alpha : tensor of shape (m,) or (m, c)
        The coefficients of the fit.
    metric : {"diagonal", "full"}
    weights : tensor of shape (n,), optional
        The weights of the rows in the average; equal by default.
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
    """Return the full metric of `next_metric` for fewer gradients than columns, without a matrix of shape (d, d)."""
    gradients = predictor_gradients(kernel, X, centers, alpha, working_memory=working_memory)
    mass = gradients.new_ones(len(X)) if weights is None else weights
    G = ((mass / mass.sum()).sqrt()[:, None] * gradients.flatten(1)).reshape(-1, X.shape[1])
    return Mahalanobis.from_outer_products(G).normalized() if bool(G.any()) else kernel.single_metric()


def _prepare(kernel: Kernel, X: Any, Z: Any, alpha: Any) -> tuple[Tensor, Tensor, Any, int]:
    """Return the centers, the coefficients of shape (m, c), the prepared centers, and the bytes that a row needs."""
    z = as_tensor(Z, device=X.device if isinstance(X, Tensor) else None)
    z = z.to(torch.promote_types(as_tensor(X[:0]).dtype, z.dtype))
    columns = as_tensor(alpha, dtype=z.dtype, device=z.device)
    columns = columns[:, None] if columns.ndim == 1 else columns
    if len(columns) != len(z):
        raise ValueError(f"alpha has {len(columns)} rows and Z has {len(z)}: f needs one coefficient for each center.")
    bytes_per_row = (block_numbers(*z.shape) + 2 * columns.shape[1] * z.shape[1]) * z.element_size()
    return z, columns, kernel.prepare(z), bytes_per_row


def _block_gradients(kernel: Kernel, x: Tensor, prepared: Any, alpha: Tensor) -> Tensor:
    """Return the gradients at the rows of x, of shape (n, c, d)."""
    if not kernel.has_closed_form_gradient:
        return _autograd_gradients(kernel, x, prepared, alpha)
    total: Tensor | None = None
    for term in kernel.gradient_terms(kernel.prepare(x, beside=prepared), prepared):
        gradients = term.metric.pull_back(term.sums(alpha), overwrite=True)
        total = gradients if total is None else total.add_(gradients)
    return x.new_zeros((len(x), alpha.shape[1], x.shape[1])) if total is None else total


def _autograd_gradients(kernel: Kernel, x: Tensor, prepared: Any, alpha: Tensor) -> Tensor:
    """Return the gradients of `_block_gradients` by automatic differentiation, for kernels without a closed form."""
    x = x.detach().clone().requires_grad_()
    with torch.enable_grad():
        predictions = kernel.values(kernel.prepare(x, beside=prepared), prepared) @ alpha
        if not predictions.requires_grad:
            raise TypeError(f"{kernel!r} is not differentiable by torch, so its predictor has no gradients.")
        gradients = [
            torch.autograd.grad(predictions[:, c].sum(), x, retain_graph=True)[0] for c in range(alpha.shape[1])
        ]
    return torch.stack(gradients, dim=1)
