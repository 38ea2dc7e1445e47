"""The feature map of m landmarks and its initial coefficients by principal components (krepes, section 3.1)."""

import threading
from typing import Any

import torch
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, as_tensor, like_input
from mercer.exceptions import NumericalError, invalid_parameter
from mercer.kernels import Kernel
from mercer.kernels.base import block_numbers, threads_of
from mercer.linalg import top_eigenpairs
from mercer.rows.loop import write_by_rows


def principal_coefficients(
    K_mm: Tensor, n_components: int | None = None, precision: torch.dtype | None = None
) -> Tensor:
    """Return A_0 = U_h Lambda_h^-1/2 from the h largest eigenpairs of K_mm = U Lambda U^T.

    The features K_nm A_0 have as inner products the Nyström approximation K_nm K_mm^+ K_mn of rank h, and
    A_0^T K_mm A_0 = I. O(m^3) time.

    Parameters
    ----------
    K_mm : tensor of shape (m, m)
        The kernel matrix of the landmarks.
    n_components : int, optional
        h; m by default. Directions whose eigenvalue is within the rounding error of the largest carry no information
        and are left out, so that there may be fewer columns.
    precision : torch.dtype, optional
        The precision of the K_nm that the coefficients will be multiplied with, whose rounding error limits the
        directions too; by default that of K_mm.

    Returns
    -------
    coefficients of shape (m, h)
    """
    values, vectors = top_eigenpairs(K_mm, n_components)
    # Two rounding errors make directions meaningless: that of the decomposition, and that of the entries of K_nm.
    noise = max(len(K_mm) * torch.finfo(K_mm.dtype).eps, torch.finfo(precision or K_mm.dtype).eps)
    kept = values > noise * values[0].clamp(min=0.0)
    return vectors[:, kept] / values[kept].sqrt()


def landmark_features(
    kernel: Kernel,
    X: Any,
    landmarks: Tensor,
    coefficients: Tensor,
    bias: Tensor | None = None,
    *,
    working_memory: float = WORKING_MEMORY,
) -> Tensor:
    """Return f(x) = A^T k_x + bias for each row x of X, where k_x are its kernel values with the m landmarks.

    Parameters
    ----------
    kernel : Kernel
    X : array-like of shape (n, d)
    landmarks : tensor of shape (m, d)
    coefficients : tensor of shape (m, h)
        A.
    bias : tensor of shape (h,), optional
    working_memory : float, default=64.0
        MiB for the temporaries of one block of rows.

    Returns
    -------
    tensor of shape (n, h)

    Notes
    -----
    O(n m (d + h)) time. The rows are processed in blocks, so that K_nm is never formed as a whole.
    """
    prepared = kernel.prepare(landmarks)
    dtype, device = landmarks.dtype, landmarks.device
    out = torch.empty((X.shape[0], coefficients.shape[1]), dtype=dtype, device=device)
    bytes_per_row = block_numbers(*landmarks.shape) * landmarks.element_size()
    # All blocks of a thread share one array: new memory for each block would take as long as the exponentials.
    own = threading.local()

    def write(rows: slice, x: Tensor) -> None:
        if len(getattr(own, "scratch", ())) < len(x):
            own.scratch = torch.empty((len(x), len(landmarks)), dtype=dtype, device=device)
        K = kernel.values(kernel.prepare(x, beside=prepared), prepared, own.scratch[: len(x)])
        torch.mm(K, coefficients, out=out[rows])
        if bias is not None:
            out[rows] += bias

    write_by_rows(
        write,
        X,
        bytes_per_row=bytes_per_row,
        working_memory=working_memory,
        dtype=dtype,
        device=device,
        n_threads=threads_of(kernel, device),
    )
    finite = torch.isfinite(out).all(dim=1)
    if not finite.all():
        raise NumericalError(
            f"the result is not a finite number for {int((~finite).sum())} of the {len(out)} rows: the kernel's values "
            "are too large there. Scale the columns down."
        )
    return out


def landmark_influence(
    kernel: Kernel, X: Any, landmarks: Any, coefficients: Any, *, working_memory: float = WORKING_MEMORY
) -> Any:
    """Which landmarks make a row's representation? Return k(x, x_l) ||A_l|| for each row x and landmark x_l.

    It is the product of the similarity of row and landmark and of the norm of the landmark's coefficients (krepes,
    section 5.1). O(n m d + m h) time, and O(n m) memory for the result.

    Parameters
    ----------
    kernel : Kernel
    X : array-like of shape (n, d)
    landmarks : array-like of shape (m, d)
    coefficients : array-like of shape (m, h)
        A, with one row A_l for each landmark.
    working_memory : float, default=64.0
        MiB for the temporaries of one block of rows, beside the result.

    Returns
    -------
    influence of shape (n, m)
        A tensor if X or the landmarks are one, else a NumPy array.
    """
    norms = torch.linalg.vector_norm(as_tensor(coefficients), dim=1)
    if len(norms) != len(landmarks):
        raise invalid_parameter(
            "coefficients",
            tuple(coefficients.shape),
            f"of shape (m, h), with one row for each of the {len(landmarks)} landmarks",
        )
    K = as_tensor(kernel.matrix(X, landmarks, working_memory=working_memory))
    return like_input(K * norms.to(K), X, landmarks)
