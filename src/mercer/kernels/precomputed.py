"""A kernel whose values with m landmarks were computed beforehand: a row holds its values with the landmarks."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import as_tensor
from mercer.exceptions import invalid_parameter
from mercer.kernels.base import GradientTerm, Kernel, LeafKernel
from mercer.linalg import inverse_root, squared_norms


class WhiteRows(NamedTuple):
    """Rows k_x R, whose inner products are the kernel, and the matrix R (`root`) with R R^T = K_mm^+."""

    root: Tensor
    rows: Tensor


class Precomputed(LeafKernel):
    """k(x, z) = k_x^T K_mm^+ k_z, where the row k_x holds a kernel's values k(x, x_1), ..., k(x, x_m) with m landmarks.

    It is meant for expensive kernels. The matrix K_nm of all rows with the landmarks is computed once, stored
    (`mercer.landmarks.kernel_matrix_on_disk` stores it in a file), and passed to an estimator in place of the rows.

    Between a row and a landmark, k is the original kernel up to rounding, since k_x^T K_mm^+ K_mm e_j = k(x, x_j).
    Between other rows it is the Nyström approximation, which is what all methods with landmarks use.

    Parameters
    ----------
    landmark_matrix : array-like of shape (m, m) or None, default=None
        K_mm, the values of the landmarks with each other. With None, `fit` takes the first m rows of X as the rows of
        the landmarks: `kernel.matrix(X, X[:m])` is such an X.
    """

    metric = None

    def __init__(self, landmark_matrix: Any = None) -> None:
        self.landmark_matrix = landmark_matrix

    @property
    def has_closed_form_gradient(self) -> bool:
        return False

    def with_metric(self, metric: Any) -> Kernel:
        if metric is not None:
            raise invalid_parameter("metric", metric, "None for a Precomputed kernel: rows are no inputs any more")
        return self.with_params()

    def resolved(self, X: Any, random_state: Any = None) -> Kernel:
        if self.landmark_matrix is not None:
            return self.with_params()
        m = X.shape[1]
        first = as_tensor(X[:m]).cpu().numpy()
        if first.shape != (m, m) or not np.allclose(first, first.T, rtol=1e-3, atol=1e-4 * np.abs(first).max()):
            raise invalid_parameter(
                "landmark_matrix",
                None,
                f"given where the first {m} rows of X are not those of its {m} landmarks",
                f"X has shape {tuple(X.shape)}; K_mm must be symmetric.",
            )
        return self.with_params(landmark_matrix=(first + first.T) / 2)

    def prepare(self, X: Tensor, beside: WhiteRows | None = None) -> WhiteRows:
        root = self._root(X) if beside is None else beside.root
        return WhiteRows(root, X @ root)

    def _root(self, X: Tensor) -> Tensor:
        if self.landmark_matrix is None:
            raise invalid_parameter(
                "landmark_matrix",
                None,
                "given before the kernel is evaluated",
                "kernel.resolved(X) takes it from the first rows of X; estimators do so in fit.",
            )
        K_mm = as_tensor(self.landmark_matrix, dtype=torch.float64, device=X.device)
        if K_mm.ndim != 2 or K_mm.shape[0] != K_mm.shape[1] or len(K_mm) != X.shape[1]:
            raise invalid_parameter(
                "landmark_matrix",
                f"array of shape {tuple(K_mm.shape)}",
                f"of shape {(X.shape[1],) * 2}, as X has columns",
            )
        # Directions whose eigenvalue is not larger than the rounding error of the values carry no information.
        stored = as_tensor(self.landmark_matrix).dtype
        noise = max(len(K_mm) * torch.finfo(torch.float64).eps, torch.finfo(stored).eps, torch.finfo(X.dtype).eps)
        return inverse_root(K_mm, noise).to(X.dtype)

    def values(self, x: WhiteRows, z: WhiteRows, scratch: Tensor | None = None) -> Tensor:
        return torch.mm(x.rows, z.rows.T, out=scratch)

    def prepared_diagonal(self, x: WhiteRows) -> Tensor:
        return squared_norms(x.rows)

    def gradient_terms(self, x: WhiteRows, z: WhiteRows) -> list[GradientTerm]:
        raise TypeError("a Precomputed kernel has no derivatives by its rows, which are no inputs any more.")

    def __eq__(self, other: object) -> bool:
        """Kernels are values: equal if their landmarks have equal values."""
        if type(self) is not type(other):
            return NotImplemented
        return bool(np.array_equal(np.asarray(self.landmark_matrix), np.asarray(other.landmark_matrix)))

    __hash__ = None  # type: ignore[assignment]
