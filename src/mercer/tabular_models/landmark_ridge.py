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

# 1 - leverage is kept above this, so that leave-one-out errors stay finite.
SMALLEST_REMAINDER = 1e-6


class LandmarkSums(NamedTuple):
    """The sums over n rows that a fit on m landmarks needs, in features Phi = K_nm T for which the penalty is |w|^2.

    Attributes
    ----------
    T : tensor of shape (m, r)
        A matrix with K_mm = (T T^T)^+.
    eigenvalues : tensor of shape (r,)
        The eigenvalues of Phi^T W Phi.
    V : tensor of shape (r, r)
        The eigenvectors of Phi^T W Phi.
    targets : tensor of shape (r, c)
        V^T Phi^T W y.
    squares : tensor of shape (c,)
        The diagonal of y^T W y.
    mass : float
        sum_i w_i k(x_i, x_i).
    n_rows : int
        The number n of rows.
    """

    T: Tensor
    eigenvalues: Tensor
    V: Tensor
    targets: Tensor
    squares: Tensor
    mass: float
    n_rows: int

    def alpha(self, ridge: float) -> Tensor:
        """Return the coefficients of the landmarks, of shape (m, c)."""
        return self.T @ (self.V @ (self.targets / (self.eigenvalues[:, None] + ridge)))

    def degrees_of_freedom(self, ridge: float) -> float:
        """Return the sum of the leverages of the rows."""
        return float((self.eigenvalues / (self.eigenvalues + ridge)).sum())


def landmark_view(
    kernel: Kernel, landmarks: Tensor, warp: Callable[[Any], Any] | None = None
) -> Callable[[Tensor], tuple[Any, Tensor]]:
    """Return the function from a block of rows to the warped, prepared rows and their kernel values with the landmarks.

    The kernel values of the next block overwrite those of the previous one.
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
    """Return the sums that solve kernel ridge regression on m landmarks for every ridge, from one pass over the rows.

    The problem is min_f sum_i w_i (y_i - f(x_i))^2 + ridge |f|^2 over f = sum_l a_l k(z_l, .), with landmarks z_l. In
    features in which the penalty is |w|^2 it is an ordinary ridge regression, and one eigendecomposition is enough for
    all ridges.

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (n, d)
        The rows. Only one block at a time is warped, converted or moved.
    landmarks : tensor of shape (m, d)
        The landmarks, already warped.
    y : tensor of shape (n, c)
    weights : tensor of shape (n,), optional
    warp : callable, optional
        A function that is first applied to the rows of a block.
    working_memory : float, default=64.0

    Returns
    -------
    LandmarkSums

    Notes
    -----
    O(n m (d + m) + m^3) time; O(m^2) memory in addition to one block of rows and y.
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
    """Return the function from a block of rows, targets y and weights W to its terms of the sums.

    These are Phi^T W Phi, Phi^T W y, y^T W y and the sum of W k(x, x), where Phi = K T.
    """
    seen, reuse = landmark_view(kernel, landmarks, warp), Reused()

    def terms(rows: Tensor, target: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        x, K = seen(rows)
        Phi = torch.mm(K, T, out=reuse(K, len(K), T.shape[1]))
        weighted = target * w[:, None]
        by_target, squares = Phi.T @ weighted, (target * weighted).sum(dim=0)
        return gram(Phi.mul_(w.sqrt()[:, None])), by_target, squares, w @ kernel.prepared_diagonal(x)

    return terms


def bound_terms(sums: LandmarkSums, ridge: float) -> EvidenceTerms:
    """Return the terms of the variational lower bound on the log evidence, at a noise relative to the output scale.

    The bound is the log density of y ~ N(0, s (Phi Phi^T + ridge W^-1)), less tr(W (K - Phi Phi^T)) / (2 ridge). This
    trace, the variance that the landmarks do not explain, penalizes a small noise; it is added to the log determinant.
    Terms of W that do not depend on the ridge are omitted.
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
    """Return the solution for each ridge, with the leave-one-out errors of the warped rows Z.

    The rows Z must be among those of the sums. If a row with leverage h_i is left out, its error e_i becomes
    e_i / (1 - h_i). Its variance (for an output scale of 1, including the noise) becomes ridge / (w_i (1 - h_i)), plus
    the part of k(x, x) that the landmarks do not explain.
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
        remainder = (1.0 - mass * (squares @ inverse)).clamp(min=SMALLEST_REMAINDER)
        residuals = (y.to(torch.float64) - fitted) / remainder[:, None]
        variances = ridge / (mass * remainder) + missing
        solutions.append(RidgeSolution(float(ridge), sums.alpha(ridge), residuals, variances))
    return solutions


def landmark_posterior_root(sums: LandmarkSums, kernel: Kernel, landmarks: Tensor, ridge: float) -> Tensor:
    """Return the lower triangular R with R^T R = (I + L^-1 K_mn W K_nm L^-T / ridge)^-1, where K_mm = L L^T.

    For an output scale of 1, R^T R is the posterior covariance of L^-1 f(landmarks), whose prior covariance is I. With
    h = L^-1 k, the predictive variance is k(x, x) - |h|^2 + |R h|^2. No entry of R is above 1 and |h|^2 is at most
    k(x, x), so R may be rounded to float32. A factor of K_mm + K_mn W K_nm / ridge may not be rounded, since it is as
    ill-conditioned as both matrices.
    """
    factor = cholesky(kernel.matrix(landmarks).to(torch.float64), warn=False)
    # On the range of T, T^+ = T^T K_mm. Thus K_mn W K_nm = B diag(eigenvalues) B^T with B = K_mm T V, and
    # L^-1 B = L^T T V.
    turned = factor.lower.T @ (sums.T @ sums.V)
    precision = turned @ (sums.eigenvalues[:, None] / ridge * turned.T)
    precision.diagonal().add_(1.0)
    lower = cholesky(precision, warn=False).lower
    return torch.linalg.solve_triangular(lower, torch.eye(len(lower)).to(lower), upper=False)
