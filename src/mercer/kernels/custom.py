"""A kernel that is computed by the user's own function."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from mercer.blocks import as_tensor, row_slices
from mercer.exceptions import NumericalWarning, invalid_parameter, warn_user
from mercer.kernels.base import GradientTerm, LeafKernel
from mercer.kernels.inner_product import ProductRows
from mercer.mahalanobis import check_metric

# Number of rows in a block. The diagonal is taken from the square kernel matrices of such blocks.
DIAGONAL_ROWS = 64


class Custom(LeafKernel):
    """A kernel that is computed by a function of two sets of rows. Its derivatives come from torch's autograd.

    Parameters
    ----------
    function : callable
        (X, Z) -> matrix of shape (n, m), called with tensors of shapes (n, d) and (m, d). The function must be
        symmetric and positive semi-definite. If gradients are needed, torch must be able to differentiate it.
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        The matrix M = L L^T, or a vector with its diagonal. The function is called with the rows x L. None is the
        identity.
    """

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor], metric: Any = None) -> None:
        self.function = function
        self.metric = metric

    @property
    def may_run_in_threads(self) -> bool:
        # A function of the user's own may not be ready to run twice at the same time.
        return False

    @property
    def has_closed_form_gradient(self) -> bool:
        return False

    def prepare(self, X: Tensor, beside: ProductRows | None = None) -> ProductRows:
        metric = check_metric(self.metric) if beside is None else beside.metric
        return ProductRows(metric, metric.project(X))

    def values(self, x: ProductRows, z: ProductRows, scratch: Tensor | None = None) -> Tensor:
        return self._matrix(x.rows, z.rows)

    def _matrix(self, x: Tensor, z: Tensor) -> Tensor:
        if not callable(self.function):
            raise invalid_parameter("function", self.function, "a callable of two sets of rows")
        matrix = as_tensor(self.function(x, z), dtype=x.dtype, device=x.device)
        if matrix.shape != (len(x), len(z)):
            raise ValueError(
                f"function returned shape {tuple(matrix.shape)} for {len(x)} and {len(z)} rows: "
                f"it must return {(len(x), len(z))}."
            )
        return matrix

    def prepared_diagonal(self, x: ProductRows) -> Tensor:
        parts = [x.rows[rows] for rows in row_slices(len(x.rows), DIAGONAL_ROWS)]
        blocks = [self._matrix(part, part) for part in parts]
        for block in blocks:
            warn_unless_kernel(block.detach())
        return torch.cat([block.diagonal() for block in blocks]) if blocks else x.rows.new_zeros(0)

    def gradient_terms(self, x: ProductRows, z: ProductRows) -> list[GradientTerm]:
        raise TypeError("a Custom kernel has no gradient weights: its derivatives come from autograd.")


def warn_unless_kernel(K: Tensor) -> None:
    """Warn if the matrix K of some rows with themselves shows that the function is not a kernel.

    A kernel is symmetric and not negative on the diagonal, and k(x, z)^2 is at most k(x, x) k(z, z). Checking these
    properties takes O(n^2) comparisons. They concern two rows at a time, so they do not find every function that is not
    a kernel.
    """
    # Functions may lose half of their digits: the tolerance is the square root of the machine precision, relative to
    # the largest value.
    tolerance = torch.finfo(K.dtype).eps ** 0.5 * K.abs().max()
    diagonal = K.diagonal()
    largest = (diagonal.clamp(min=0.0)[:, None] * diagonal.clamp(min=0.0)).sqrt()
    if ((K - K.T).abs() > tolerance).any():
        wrong = "k(x, z) is not k(z, x)"
    elif (diagonal < -tolerance).any():
        wrong = "k(x, x) is negative"
    elif (K.abs() > largest + tolerance).any():
        wrong = "k(x, z)^2 is larger than k(x, x) k(z, z)"
    else:
        return
    warn_user(
        f"function is not a positive semi-definite kernel: {wrong} for some rows. Results may be meaningless.",
        NumericalWarning,
    )
