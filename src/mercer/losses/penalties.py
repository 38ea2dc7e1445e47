"""Penalties and constraints that are added to a loss: a small norm, orthonormal directions, embeddings of length 1."""

import torch
from torch import Tensor

from mercer.exceptions import NumericalError


def tikhonov(A: Tensor, K_mm: Tensor | None = None) -> Tensor:
    """Return |W|^2 = Tr(A^T K_mm A), the squared RKHS norm of f(x) = W phi(x) = A^T k_x.

    Parameters
    ----------
    A : tensor of shape (m, h)
    K_mm : tensor of shape (m, m), optional
        The kernel matrix of the landmarks. The default is the identity, as in whitened coordinates.

    Notes
    -----
    O(m^2 h) time.
    """
    return (A * (A if K_mm is None else K_mm @ A)).sum()


def orthogonality(gram: Tensor) -> Tensor:
    """Return |A^T K_mm A - I|^2, which is 0 if the directions W in the kernel's feature space are orthonormal.

    Parameters
    ----------
    gram : tensor of shape (h, h)
        A^T K_mm A = W W^T.
    """
    return (gram - torch.eye(len(gram), dtype=gram.dtype, device=gram.device)).square().sum()


def orthonormal(A: Tensor, K_mm: Tensor | None = None) -> Tensor:
    """Return the A' nearest to A with A'^T K_mm A' = I, by the distance Tr((A' - A)^T K_mm (A' - A)) of the RKHS.

    It is the polar factor A (A^T K_mm A)^-1/2. Applied after each step, it enforces the constraint of the simple
    contrastive loss.

    Parameters
    ----------
    A : tensor of shape (m, h)
    K_mm : tensor of shape (m, m), optional
        The kernel matrix of the landmarks. The default is the identity, as in whitened coordinates.

    Raises
    ------
    NumericalError
        If the columns of A are linearly dependent: the nearest A' is then not unique.

    Notes
    -----
    O(m^2 h + h^3) time, in float64: the product squares the condition number of A.
    """
    B = A.to(torch.float64)
    gram = B.T @ (B if K_mm is None else K_mm.to(torch.float64) @ B)
    values, V = torch.linalg.eigh((gram + gram.T) / 2)
    # `not >` instead of `<=`, so that NaN is caught as well.
    if not bool(values[0] > len(values) * torch.finfo(values.dtype).eps * values[-1]):
        raise NumericalError(
            f"the {len(values)} columns of A are linearly dependent, or not finite: A^T K_mm A has eigenvalues from "
            f"{float(values[0]):.1e} to {float(values[-1]):.1e}. Fewer components or smaller steps avoid this."
        )
    return (B @ (V * values.rsqrt()) @ V.T).to(A.dtype)


def unit_norms(embeddings: Tensor) -> Tensor:
    """Return E[(|f(x)|^2 - 1)^2], which is 0 if all embeddings f(x) have length 1.

    Parameters
    ----------
    embeddings : tensor of shape (n, h)
    """
    return (embeddings.square().sum(dim=1) - 1.0).square().mean()
