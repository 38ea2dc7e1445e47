"""Eigenpairs of symmetric matrices, all or a few: A v = mu v, and A v = mu B v with a B that may be singular."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
import torch
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from torch import Tensor

from mercer.exceptions import ConvergenceWarning, warn_user

# Computing only the wanted eigenvectors is faster if they are less than this share of all.
PARTIAL_SHARE = 0.3
# The pivots of a Cholesky factor estimate the smallest eigenvalue only roughly. The factor is used if the estimate is
# above the tolerance by this factor.
PIVOT_MARGIN = 1e3
# Matrices with fewer rows than this are decomposed as a whole.
FEW = 50
# How many blocks the Krylov space may have before Lanczos steps with single vectors, which can be restarted, take over.
MOST_BLOCKS = 12


class EigenPairs(NamedTuple):
    """Eigenvalues in falling order, of shape (k,), and their eigenvectors in the columns, of shape (n, k)."""

    values: Tensor
    vectors: Tensor


def top_eigenpairs(A: Tensor, n_components: int | None = None) -> EigenPairs:
    """Return the largest eigenvalues of a symmetric matrix and their eigenvectors.

    On the CPU, a few eigenvectors are computed without the others (LAPACK's syevr), which takes less than half the
    time. Elsewhere all are computed, in O(n^3), and the largest are returned. So are they where gradients are recorded,
    since syevr has none.
    """
    n = len(A)
    n_components = n if n_components is None else min(n_components, n)
    has_gradient = A.requires_grad and torch.is_grad_enabled()
    if A.device.type == "cpu" and not has_gradient and 0 < n_components < PARTIAL_SHARE * n:
        found = _few_eigenpairs(A, n_components)
        if found is not None:
            return found
    values, vectors = torch.linalg.eigh(A)
    first = n - n_components
    return EigenPairs(values[first:].flip(0), vectors[:, first:].flip(1).contiguous())


def _few_eigenpairs(A: Tensor, n_components: int) -> EigenPairs | None:
    """Return only the largest eigenvalues and their vectors, or None if the result of LAPACK cannot be trusted.

    If eigenvalues are close together, syevr with a range of indices may return fewer pairs than were asked for, or
    vectors that are not orthogonal to each other. It does not always report an error, even if it returns no pair.
    """
    n = len(A)
    try:
        values, vectors = scipy.linalg.eigh(
            A.detach().numpy(), subset_by_index=(n - n_components, n - 1), driver="evr", check_finite=False
        )
    except np.linalg.LinAlgError:
        return None
    if vectors.shape[1] != n_components or len(values) != n_components:
        return None
    gram = vectors.T @ vectors
    if not np.abs(gram - np.eye(n_components)).max() < np.sqrt(np.finfo(vectors.dtype).eps):
        return None
    pair = torch.from_numpy(values), torch.from_numpy(np.ascontiguousarray(vectors))
    return EigenPairs(pair[0].flip(0), pair[1].flip(1).contiguous())


def inverse_root(B: Tensor, tolerance: float | None = None) -> Tensor:
    """Return V of shape (n, r) with V^T B V = I_r, where r is the numerical rank of a positive semi-definite B.

    V = U_r D_r^-1/2, from the r eigenpairs of B = U D U^T that count. Eigenvalues at or below `tolerance` times the
    largest (by default n times the rounding error) count as zero, so that V V^T is the pseudo-inverse of B. O(n^3).
    """
    values, vectors = torch.linalg.eigh(B)
    if tolerance is None:
        tolerance = len(B) * torch.finfo(B.dtype).eps
    kept = values > tolerance * values[-1].clamp(min=0.0)
    return (vectors[:, kept] / values[kept].sqrt()).flip(1)


def generalized_eigenpairs(
    A: Tensor, B: Tensor, n_components: int | None = None, tolerance: float | None = None
) -> EigenPairs:
    """Solve A v = mu B v for the largest mu, with A symmetric and B symmetric positive semi-definite.

    The eigenvectors are orthonormal in B and orthogonal in A: V^T B V = I and V^T A V = diag(mu). A direction in the
    null space of B has no finite eigenvalue. Such directions are left out, so that at most rank(B) pairs are returned.

    Parameters
    ----------
    A, B : tensors of shape (n, n)
    n_components : int, optional
        How many pairs are returned; all by default.
    tolerance : float, optional
        Eigenvalues of B at or below this share of its largest count as zero. By default n times the rounding error.

    Notes
    -----
    O(n^3): a Cholesky factor of B if B is well conditioned, else an eigendecomposition of B. Then follows one
    eigendecomposition of the reduced matrix, only of the wanted pairs if they are few.
    """
    lower, failed = torch.linalg.cholesky_ex(B)
    diagonal = lower.diagonal()
    floor = len(B) * torch.finfo(B.dtype).eps if tolerance is None else tolerance
    # The squared ratio of the pivots is a (generous) estimate of the reciprocal condition number.
    if not failed and (diagonal.min() / diagonal.max()) ** 2 > PIVOT_MARGIN * floor:
        half = torch.linalg.solve_triangular(lower, A, upper=False)
        reduced = torch.linalg.solve_triangular(lower, half.T, upper=False)
        values, vectors = top_eigenpairs((reduced + reduced.T) / 2, n_components)
        return EigenPairs(values, torch.linalg.solve_triangular(lower.T, vectors, upper=True))
    V = inverse_root(B, tolerance)
    if V.shape[1] == 0:
        return EigenPairs(A.new_zeros(0), A.new_zeros(len(A), 0))
    reduced = V.T @ A @ V
    values, vectors = top_eigenpairs((reduced + reduced.T) / 2, n_components)
    return EigenPairs(values, V @ vectors)


def largest_eigenvalue(A: Tensor) -> float:
    """Return the largest eigenvalue of a positive semi-definite matrix, by a few products with vectors, O(n^2) each."""
    if len(A) < FEW or not A.diagonal().any():
        return float(torch.linalg.eigvalsh(A)[-1])
    # A start without a pattern has a part along every eigenvector. A column of A may have none along the one that is
    # asked for: it is zero outside its own block of a block-diagonal matrix.
    start = torch.arange(1, len(A) + 1, dtype=A.dtype, device=A.device).square().cos()
    return float(lanczos_eigenpairs(lambda V: A @ V, start, 1).values[0])


def lanczos_eigenpairs(
    multiply: Callable[[Tensor], Tensor], start: Tensor, n_components: int, tolerance: float = 1e-10
) -> EigenPairs:
    """Return the largest eigenpairs of a symmetric A of which only products with vectors are known, by Lanczos steps.

    Parameters
    ----------
    multiply : callable
        V -> A V for V of shape (n, k).
    start : tensor of shape (n,)
        The first vector of the Krylov space. It is not drawn at random, so that the result is reproducible. Fewer steps
        are needed if it is a combination of the wanted eigenvectors.
    n_components : int
    tolerance : float, default=1e-10
        Relative accuracy of the eigenvalues.

    Warns
    -----
    ConvergenceWarning
        If the Lanczos steps did not converge. A is then formed by a product with the identity and decomposed as a
        whole, in O(n^3).
    """
    n = len(start)

    def product(v: np.ndarray) -> np.ndarray:
        V = torch.from_numpy(np.ascontiguousarray(v)).to(start).reshape(n, 1)
        return multiply(V).reshape(n).cpu().numpy()

    operator = LinearOperator((n, n), matvec=product, dtype=start.cpu().numpy().dtype)
    try:
        values, vectors = eigsh(operator, n_components, which="LA", v0=start.cpu().numpy(), tol=tolerance)
    except ArpackNoConvergence:
        warn_user(
            f"Lanczos steps did not find {n_components} eigenvectors to tolerance={tolerance:g}: the whole "
            "decomposition is computed. Fewer components are found more easily.",
            ConvergenceWarning,
        )
        A = multiply(torch.eye(n, dtype=start.dtype, device=start.device))
        return top_eigenpairs((A + A.T) / 2, n_components)
    order = np.argsort(-values)
    return EigenPairs(
        torch.from_numpy(values[order].copy()).to(start), torch.from_numpy(vectors[:, order].copy()).to(start)
    )


def block_krylov_eigenpairs(
    multiply: Callable[[Tensor], Tensor], start: Tensor, n_components: int, tolerance: float = 1e-8
) -> EigenPairs:
    """Return the largest eigenpairs of a symmetric matrix A, by products with several vectors at once.

    The Krylov space that start, A start, A^2 start, ... span grows by one block at a time, until the best
    approximations in it (those of Rayleigh and Ritz) are eigenvectors. A few blocks suffice if the wanted eigenvalues
    are well above the others and `start` is near their eigenvectors. A product with ten vectors reads the matrix once,
    as a product with one vector does. If 12 blocks do not suffice, `lanczos_eigenpairs` continues from the sum of the
    vectors found.

    Parameters
    ----------
    multiply : callable
        V -> A V for V of shape (n, k).
    start : tensor of shape (n, k)
        At least as many vectors as are wanted. They are not drawn at random, so that the result is reproducible.
    n_components : int
    tolerance : float, default=1e-8
        The largest residual |A v - mu v| that is accepted, relative to the largest eigenvalue. The error of mu is of
        the order of the square of the residual.
    """
    basis = torch.linalg.qr(start).Q
    images = multiply(basis)
    width = basis.shape[1]
    for _ in range(MOST_BLOCKS):
        reduced = basis.T @ images
        values, Y = top_eigenpairs((reduced + reduced.T) / 2, n_components)
        vectors = basis @ Y
        residuals = torch.linalg.vector_norm(images @ Y - vectors * values, dim=0)
        if residuals.max() <= tolerance * values[0].abs():
            return EigenPairs(values, vectors)
        if basis.shape[1] + width > len(start):
            break
        block = images[:, -width:]
        for _ in range(2):  # the second time removes what rounding left of the directions in the basis
            block = torch.linalg.qr(block - basis @ (basis.T @ block)).Q
        basis, images = torch.cat([basis, block], dim=1), torch.cat([images, multiply(block)], dim=1)
    return lanczos_eigenpairs(multiply, vectors.sum(dim=1), n_components)
