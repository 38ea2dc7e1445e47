"""Kernel ridge regression on m landmarks by sums over row blocks, with leave-one-out errors and the evidence bound."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mercer.blocks import WORKING_MEMORY, Reused, rows_per_block
from mercer.kernels import Kernel
from mercer.kernels.base import block_numbers
from mercer.landmarks.features import landmark_features, principal_coefficients
from mercer.linalg import RidgeSolution, cholesky, gram
from mercer.rows import sum_over_rows
from mercer.tabular_models.evidence import EvidenceTerms


class LandmarkSums(NamedTuple):
    """What a fit on m landmarks needs of n rows, with Phi = K_nm T the features in which the penalty is |w|^2.

    Attributes
    ----------
    T : tensor of shape (m, r)
        K_mm = (T T^T)^+.
    eigenvalues : tensor of shape (r,)
        Of Phi^T W Phi.
    V : tensor of shape (r, r)
        Its eigenvectors.
    targets : tensor of shape (r, c)
        V^T Phi^T W y.
    squares : tensor of shape (c,)
        y^T W y.
    mass : float
        The sum of W times k(x, x).
    n_rows : int
    """

    T: Tensor
    eigenvalues: Tensor
    V: Tensor
    targets: Tensor
    squares: Tensor
    mass: float
    n_rows: int

    def alpha(self, ridge: float) -> Tensor:
        """Return the coefficients on the landmarks, of shape (m, c)."""
        return self.T @ (self.V @ (self.targets / (self.eigenvalues[:, None] + ridge)))

    def degrees_of_freedom(self, ridge: float) -> float:
        """Return the sum of the leverages of the rows."""
        return float((self.eigenvalues / (self.eigenvalues + ridge)).sum())


def landmark_view(
    kernel: Kernel, landmarks: Tensor, warp: Callable[[Any], Any] | None = None
) -> Callable[[Tensor], tuple[Any, Tensor]]:
    """Return the function from a block of rows to these, warped and prepared, and their kernel values with landmarks.

    The values of the next block overwrite those of the last.
    """
    prepared, reuse = kernel.prepare(landmarks), Reused()

    def seen(rows: Tensor) -> tuple[Any, Tensor]:
        warped = rows if warp is None else torch.as_tensor(warp(rows.cpu().numpy())).to(rows)
        x = kernel.prepare(warped, beside=prepared)
        return x, kernel.values(x, prepared, reuse(rows, len(rows), len(landmarks)))

    return seen


def landmark_sums(
    kernel: Kernel,
    X: Any,
    landmarks: Tensor,
    y: Tensor,
    weights: Tensor | None = None,
    *,
    warp: Callable[[Any], Any] | None = None,
    working_memory: float = WORKING_MEMORY,
) -> LandmarkSums:
    """Go once over the rows and return the sums for every ridge.

    Solves min_f sum_i w_i (y_i - f(x_i))^2 + ridge |f|^2 over f = sum_l a_l k(z_l, .), m landmarks z_l. In features of
    unit penalty it is an ordinary ridge regression, and one eigendecomposition serves all ridges.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d)
        Only the block at hand is warped, converted or moved.
    landmarks : tensor of shape (m, d)
        Warped.
    y : tensor of shape (n, c)
    weights : tensor of shape (n,), optional
    warp : callable, optional
        Applied to the rows of a block first.
    working_memory : float, default=64.0

    Notes
    -----
    O(n m (d + m) + m^3) time; O(m^2) memory beside the block and y.
    """
    dtype, device = landmarks.dtype, landmarks.device
    K_mm = kernel.matrix(landmarks, working_memory=working_memory)
    T = principal_coefficients(K_mm.to(torch.float64), precision=dtype).to(dtype)
    mass = torch.ones(len(y), dtype=dtype, device=device) if weights is None else weights
    bytes_per_row = (block_numbers(*landmarks.shape) + 2 * T.shape[1]) * landmarks.element_size()
    S, b, squares, diagonal = sum_over_rows(
        ridge_terms,
        (kernel, landmarks, T, warp),
        X,
        y,
        mass,
        rows_a_block=rows_per_block(X.shape[0], bytes_per_row, working_memory),
        dtype=dtype,
        device=device,
    )
    eigenvalues, V = torch.linalg.eigh((S + S.T) / 2)
    return LandmarkSums(T.to(torch.float64), eigenvalues.clamp(min=0.0), V, V.T @ b, squares, float(diagonal), len(y))


def ridge_terms(
    kernel: Kernel, landmarks: Tensor, T: Tensor, warp: Callable[[Any], Any] | None
) -> Callable[[Tensor, Tensor, Tensor], tuple[Tensor, ...]]:
    """Return (rows, targets, weights) -> Phi^T W Phi, Phi^T W y, y^T W y and the sum of W k(x, x), Phi = K T."""
    seen, reuse = landmark_view(kernel, landmarks, warp), Reused()

    def terms(rows: Tensor, target: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        x, K = seen(rows)
        Phi = torch.mm(K, T, out=reuse(K, len(K), T.shape[1]))
        weighted = target * w[:, None]
        by_target, squares = Phi.T @ weighted, (target * weighted).sum(dim=0)
        return gram(Phi.mul_(w.sqrt()[:, None])), by_target, squares, w @ kernel.prepared_diagonal(x)

    return terms


def bound_terms(sums: LandmarkSums, ridge: float) -> EvidenceTerms:
    """Return what the variational bound on the log evidence is made of, at a noise relative to the output scale.

    y ~ N(0, s (Phi Phi^T + ridge W^-1)), less tr(W (K - Phi Phi^T)) / (2 ridge): what the landmarks leave unexplained
    counts against a small noise, as part of the determinant. Terms that do not depend on the ridge (of W) are left out.
    """
    log_determinant = float(torch.log(sums.eigenvalues / ridge + 1.0).sum()) + sums.n_rows * math.log(ridge)
    explained = (sums.targets.square() / (sums.eigenvalues[:, None] + ridge)).sum(dim=0)
    q = ((sums.squares - explained) / ridge).clamp(min=torch.finfo(torch.float64).tiny)
    left_over = max(sums.mass - float(sums.eigenvalues.sum()), 0.0)
    return EvidenceTerms(sums.n_rows, q.cpu().numpy(), log_determinant + left_over / ridge)


def landmark_path(
    sums: LandmarkSums,
    kernel: Kernel,
    Z: Tensor,
    landmarks: Tensor,
    y: Tensor,
    ridges: Sequence[float],
    weights: Tensor | None = None,
    *,
    working_memory: float = WORKING_MEMORY,
) -> list[RidgeSolution]:
    """Return the solution of each ridge, with the leave-one-out errors at the rows Z, which must be among those summed.

    With h_i the leverage of a row, leaving it out turns its error e_i into e_i / (1 - h_i) and its variance (for an
    output scale of 1, noise included) into ridge / (w_i (1 - h_i)), plus what the landmarks cannot say of k(x, x).
    """
    turned = (sums.T @ sums.V).to(Z.dtype)
    features = landmark_features(kernel, Z, landmarks, turned, working_memory=working_memory).to(torch.float64)
    squares = features.square()
    mass = torch.ones(len(y), dtype=torch.float64, device=Z.device) if weights is None else weights.to(torch.float64)
    missing = (kernel.diagonal(Z).to(torch.float64) - squares.sum(dim=1)).clamp(min=0.0)
    solutions = []
    for ridge in ridges:
        inverse = 1.0 / (sums.eigenvalues + ridge)
        fitted = features @ (inverse[:, None] * sums.targets)
        kept = (1.0 - mass * (squares @ inverse)).clamp(min=1e-6)
        residuals = (y.to(torch.float64) - fitted) / kept[:, None]
        variances = ridge / (mass * kept) + missing
        solutions.append(RidgeSolution(float(ridge), sums.alpha(ridge), residuals, variances))
    return solutions


def landmark_posterior_root(sums: LandmarkSums, kernel: Kernel, landmarks: Tensor, ridge: float) -> Tensor:
    """Return R, lower triangular, with R^T R = (I + L^-1 K_mn W K_nm L^-T / ridge)^-1, L the Cholesky factor of K_mm.

    For an output scale of 1, R^T R is the posterior covariance of L^-1 f(landmarks), which is I before any row is seen.
    With h = L^-1 k the predictive variance is k(x, x) - |h|^2 + |R h|^2. No entry is above 1 and |h|^2 is at most
    k(x, x), so that R may be rounded to float32. The factor of K_mm + K_mn W K_nm / ridge, as ill-conditioned as both
    matrices, may not.
    """
    factor = cholesky(kernel.matrix(landmarks).to(torch.float64), warn=False)
    # T^+ = T^T K_mm on the span that T keeps, so that K_mn W K_nm = B diag(eigenvalues) B^T with B = K_mm T V, and
    # L^-1 B = L^T T V.
    turned = factor.lower.T @ (sums.T @ sums.V)
    precision = turned @ (sums.eigenvalues[:, None] / ridge * turned.T)
    precision.diagonal().add_(1.0)
    lower = cholesky(precision, warn=False).lower
    return torch.linalg.solve_triangular(lower, torch.eye(len(lower)).to(lower), upper=False)
