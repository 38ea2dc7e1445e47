"""Cholesky factors that add the jitter they need and say so, and solves refined from float32 to float64."""

from typing import NamedTuple

import torch
from scipy.linalg import get_lapack_funcs
from torch import Tensor

from mercer.exceptions import NumericalError, NumericalWarning, warn_user
from mercer.linalg.conjugate_gradients import conjugate_gradients

# The largest jitter that is tried, relative to the mean of the diagonal.
MAX_JITTER = 1e-3
# With a float32 factor as preconditioner, a condition number of 1e6 takes about 5 steps.
REFINEMENT_STEPS = 12


class CholeskyFactor(NamedTuple):
    """The lower triangular L with L L^T = A + jitter I.

    Attributes
    ----------
    lower : tensor of shape (n, n)
        L.
    jitter : float
        What had to be added to the diagonal to make A positive definite; 0 if nothing was added.
    """

    lower: Tensor
    jitter: float

    def solve(self, B: Tensor) -> Tensor:
        """Return (A + jitter I)^-1 B for a vector or a matrix B, in O(n^2) for each column."""
        return _solve(self.lower, B[:, None] if B.ndim == 1 else B).reshape(B.shape)

    def log_determinant(self) -> Tensor:
        """Return log det(A + jitter I)."""
        return 2.0 * self.lower.diagonal().log().sum()

    def inverse(self) -> Tensor:
        """Return (A + jitter I)^-1, symmetric, at some 2.5 times the cost of the factor."""
        return torch.cholesky_inverse(self.lower)

    def inverse_diagonal(self, *, precision: torch.dtype | None = None, overwrite: bool = False) -> Tensor:
        """Return the diagonal of (A + jitter I)^-1, at a third of the cost of the inverse.

        Since (L L^T)^-1 = L^-T L^-1, its entries are the squared norms of the columns of L^-1.

        Parameters
        ----------
        precision : torch.dtype, optional
            The precision in which L is inverted; by default that of L. A float32 inverse of a float64 factor takes half
            the time. Its relative error is the rounding error times the condition number of L, which is the square root
            of that of A: 1e-4 if A has 1e6. (The error of a factor that was itself computed in float32 grows with the
            condition number of A.)
        overwrite : bool, default=False
            Whether L may be overwritten, which saves a copy of its size.
        """
        lower = self.lower if precision is None else self.lower.to(precision)
        own = lower if overwrite or lower is not self.lower else lower.clone()
        return _inverted_triangle_(own).square_().sum(dim=0, dtype=self.lower.dtype)


def cholesky(A: Tensor, *, shift: float = 0.0, warn: bool = True) -> CholeskyFactor:
    """Factorize a symmetric positive semi-definite A + shift I, with the smallest jitter that makes it definite.

    The first attempt adds no jitter. The next one adds the rounding error of the matrix, relative to the mean of the
    diagonal, and each further one ten times more, up to 1e-3.

    Parameters
    ----------
    A : tensor of shape (n, n)
        It is not changed.
    shift : float, default=0.0
        Added to the diagonal of the copy that becomes the factor, so that the caller does not need a copy.
    warn : bool, default=True
        Whether a NumericalWarning says how much jitter was added.

    Raises
    ------
    NumericalError
        If A has a number that is not finite, or is far from positive semi-definite.

    Notes
    -----
    O(n^3) time for each attempt, and O(n^2) memory for the factor.
    """
    lower, failed = _factor(_shifted(A, shift))
    if not failed:
        return CholeskyFactor(lower, 0.0)
    if not torch.isfinite(A).all():
        raise NumericalError("the matrix to factorize has a NaN or an infinity.")
    scale = (A.diagonal() + shift).abs().mean().item() or 1.0
    relative = max(torch.finfo(A.dtype).eps * len(A) ** 0.5, torch.finfo(A.dtype).eps * 10)
    jitter = 0.0
    while relative <= MAX_JITTER:
        jitter = relative * scale
        lower, failed = _factor(_shifted(A, shift + jitter))
        if not failed:
            if warn:
                warn_user(
                    f"the matrix of size {len(A)} is not positive definite in {A.dtype}: added {jitter:.1e} to its "
                    "diagonal. A larger ridge, float64 or fewer duplicate rows avoid this.",
                    NumericalWarning,
                )
            return CholeskyFactor(lower, jitter)
        relative *= 10.0
    raise NumericalError(
        f"the matrix of size {len(A)} is not positive semi-definite: even {jitter:.1e} added to its "
        "diagonal does not make it so. A larger ridge may help; an indefinite kernel cannot be used here."
    )


def solve_refined(A: Tensor, B: Tensor, *, tolerance: float = 1e-14) -> Tensor:
    """Solve A X = B for a float64 positive definite A, with most of the work done in float32.

    The factor is computed in float32, which takes half the time. It then serves as the preconditioner of conjugate
    gradients in float64: some five products with A bring the relative residual below `tolerance` for condition
    numbers up to 1e6. Beyond these, or where A has no Cholesky factor in float32, the factor is computed in float64.

    Parameters
    ----------
    A : float64 tensor of shape (n, n)
    B : float64 tensor of shape (n,) or (n, k)
    tolerance : float, default=1e-14
        The largest residual of a column that is accepted, relative to the column of B. It is compared with the residual
        that conjugate gradients update from step to step; the true residual cannot fall below the rounding error times
        the condition number.

    Notes
    -----
    O(n^3) time for the factor, and O(n^2 k) for each step.
    """
    lower, failed = _factor(A.to(torch.float32))
    if not failed:
        solution = conjugate_gradients(
            lambda V: A @ V,
            B,
            precondition=lambda R: _scaled_solve(lower, R),
            tolerance=tolerance,
            max_steps=REFINEMENT_STEPS,
            warn=False,
        )
        if solution.converged:
            return solution.x
    return cholesky(A).solve(B)


def inverted(A: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return the inverse of a symmetric A, in the memory of A, and log det A; None if A is not positive definite.

    No jitter is added. On the CPU both steps are done by LAPACK in place, in half the time that torch takes at n = 900.
    """
    lower, failed = _factor(A)
    if failed:
        return None
    log_determinant = 2.0 * lower.diagonal().log().sum()
    if not _is_for_lapack(lower):
        return torch.cholesky_inverse(lower), log_determinant
    (potri,) = get_lapack_funcs(("potri",), (lower.numpy(),))
    potri(lower.numpy().T, lower=0, overwrite_c=1)
    # LAPACK leaves the inverse in the triangle that held the factor; the other triangle is zero.
    diagonal = lower.diagonal().clone()
    lower += lower.T.clone()
    lower.diagonal().copy_(diagonal)
    return lower, log_determinant


def _shifted(A: Tensor, shift: float) -> Tensor:
    """Return a copy of A with `shift` added to its diagonal."""
    copy = A.clone()
    if shift:
        copy.diagonal().add_(shift)
    return copy


def _is_for_lapack(A: Tensor) -> bool:
    """Whether SciPy's LAPACK can work on A in place: in main memory, row after row, and outside of autograd."""
    return A.device.type == "cpu" and A.is_contiguous() and not A.requires_grad and len(A) > 0


def _factor(A: Tensor) -> tuple[Tensor, bool]:
    """Return the lower Cholesky factor of A, which is overwritten, and whether the factorization failed.

    On the CPU, LAPACK is called in place through SciPy. torch copies the matrix to another layout and back, which takes
    40 % longer at n = 8000 in float32. LAPACK wants A column by column, which is A^T row by row; A is symmetric, so
    that the two are the same.
    """
    if not _is_for_lapack(A):
        lower, failed = torch.linalg.cholesky_ex(A)
        return lower, bool(failed)
    (potrf,) = get_lapack_funcs(("potrf",), (A.numpy(),))
    _, failed = potrf(A.numpy().T, lower=0, overwrite_a=1, clean=0)
    # Not every LAPACK reports a failure when it meets a NaN.
    return A.tril_(), bool(failed) or not bool(torch.isfinite(A.diagonal()).all())


def _inverted_triangle_(lower: Tensor) -> Tensor:
    """Return L^-1, which may overwrite L. On the CPU LAPACK takes a sixth of the work of a solve with the identity."""
    if not _is_for_lapack(lower):
        return torch.linalg.solve_triangular(lower, torch.eye(len(lower)).to(lower), upper=False)
    (trtri,) = get_lapack_funcs(("trtri",), (lower.numpy(),))
    trtri(lower.numpy().T, lower=0, overwrite_c=1)
    return lower


def _scaled_solve(lower: Tensor, R: Tensor) -> Tensor:
    """Return (L L^T)^-1 R, solved in the precision of L for a float64 R, whose columns are first scaled to 1.

    Without the scaling, small residuals would be rounded to zero in float32.
    """
    scale = R.abs().amax(dim=0, keepdim=True).clamp(min=torch.finfo(R.dtype).tiny)
    return _solve(lower, (R / scale).to(lower.dtype)).to(R.dtype) * scale


def _solve(lower: Tensor, B: Tensor) -> Tensor:
    """Solve L L^T X = B by two triangular solves; torch.cholesky_solve copies L first and takes ten times as long."""
    half = torch.linalg.solve_triangular(lower, B, upper=False)
    return torch.linalg.solve_triangular(lower.T, half, upper=True)
