"""The evidence (marginal likelihood) of a Gaussian process, its gradient in closed form, and its maximum."""

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from mercer.kernels import GradientTerm, Kernel
from mercer.kernels.coordinatewise import ColumnTerms
from mercer.linalg import inverted, threads_for
from mercer.mahalanobis import Mahalanobis

# Bounds of the logarithms of the length scales, in units of the standard deviations of standardized columns.
LOG_SCALE_BOUNDS = (-6.0, 9.0)
# The largest noise relative to the output scale; with more, nothing can be learned.
MOST_NOISE = 30.0
# The optimization ends if a step gains less than this share of the mean log evidence: a thousandth of a nat in total.
FTOL = 1e-7


class Evidence(NamedTuple):
    """Minus the log evidence per row and output, and its derivatives in the logarithms of the parameters."""

    value: float
    by_scales: np.ndarray
    by_noise: float


class Maximum(NamedTuple):
    """The parameters with the largest evidence that was found.

    Attributes
    ----------
    log_scales : ndarray of shape (r,) or (1,)
        The logarithms of the length scales of the columns, or of the one that all columns share.
    log_noise : float
        The logarithm of the noise variance relative to the output scale.
    value : float
        Minus the log evidence per row and output.
    n_evaluations : int
    """

    log_scales: np.ndarray
    log_noise: float
    value: float
    n_evaluations: int


class EvidenceTerms(NamedTuple):
    """The terms of the log evidence, which is -(n log(2 pi s) + q / s + log det A) / 2 at the output scale s.

    Attributes
    ----------
    n : int
        The number of targets, including repeated measurements.
    q : ndarray of shape (c,)
        y^T A^-1 y, including the term of repeated measurements.
    log_determinant : float
        log det A.
    """

    n: int
    q: np.ndarray
    log_determinant: float

    @classmethod
    def joined(cls, parts: Sequence["EvidenceTerms"]) -> "EvidenceTerms":
        """Return the terms of several independent parts that share one output scale."""
        return cls(sum(p.n for p in parts), np.sum([p.q for p in parts], axis=0), sum(p.log_determinant for p in parts))

    def best_scales(self) -> np.ndarray:
        """Return the output scales that maximize the evidence, of shape (c,)."""
        return np.maximum(self.q / self.n, np.finfo(np.float64).tiny)

    def log_evidence(self, scales: np.ndarray) -> float:
        """Return the log density of all targets at these output scales."""
        terms = self.n * np.log(2 * math.pi * scales) + self.q / scales + self.log_determinant
        return -0.5 * float(terms.sum())


def length_scale_derivatives(terms: Iterable[GradientTerm], G: Tensor, width: int) -> Tensor:
    """Return (1/2) sum_ij G_ij dk(z_i, z_j) / d log l_k for each column k, for a symmetric G.

    For radial kernels, the derivative of k(z_i, z_j) in log l_k is P_ij (z_ik - z_jk)^2. With B = G o P, one matrix
    product gives the result for all columns: sum_i (B 1)_i z_ik^2 - z_k^T B z_k. The weights P are those of average
    gradient outer products, so this works for every kernel with gradients. Inner products have no first term.

    Parameters
    ----------
    terms : iterable of GradientTerm
        The gradient terms of the kernel between the rows and themselves.
    G : tensor of shape (n, n)
    width : int
        The number r of projected columns.

    Returns
    -------
    tensor of shape (r,)

    Notes
    -----
    O(n^2 r).
    """
    if isinstance(terms, ColumnTerms):
        return 0.5 * terms.length_scale_sums(G)
    pieces: list[Tensor] = []
    for term in terms:
        B = G * term.P
        piece = -(term.z * (B @ term.z)).sum(dim=0)
        if term.Q is not None:
            mass = B.sum(dim=1) if term.Q is term.P else (G * term.Q).sum(dim=1)
            piece += mass @ term.x.square()
        pieces.append(piece)
    return torch.cat(pieces).reshape(-1, width).sum(dim=0)


def negative_log_evidence(
    kernel: Kernel,
    Z: Tensor,
    y: Tensor,
    log_scales: np.ndarray,
    log_noise: float,
    weights: Tensor | None = None,
    repeats: tuple[int, Tensor] | None = None,
    output_scales: Tensor | None = None,
) -> Evidence:
    """Return minus the log evidence of y ~ N(0, s A), A = K + noise W^-1, at the best output scale s, with gradients.

    With a = A^-1 y and q = y^T a, it is (n log(2 pi s) + q / s + log det A) / 2 for each output. The best s is q / n.
    The derivative in a parameter of A is tr(G dA) / 2 with G = A^-1 - a a^T / s. The value and the derivatives are
    divided by n and by the number of outputs.

    Parameters
    ----------
    kernel : Kernel
        The kernel, whose metric is replaced by the length scales.
    Z : tensor of shape (n, r)
        The rows, projected by any metric that is to stay fixed.
    y : tensor of shape (n, c)
        The centered targets; each output has its own s.
    log_scales : ndarray of shape (r,) or (1,)
        The logarithms of the length scales of the columns, or of the one that all columns share.
    log_noise : float
        The logarithm of the noise variance relative to s.
    weights : tensor of shape (n,), optional
        The diagonal of W: the number of targets whose mean is the y of a row.
    repeats : (int, tensor of shape (c,)), optional
        The number `count` of measurements beyond the n means, and their weighted squared distance `scatter` from them.
        They only depend on the noise: count log noise is added to log det A, scatter / noise is added to q, and n is
        increased by count.
    output_scales : tensor of shape (c,), optional
        Given values of s, which are used instead of the best ones.

    Notes
    -----
    O(n^3 + n^2 r): a Cholesky factor, its inverse, and one product for all length scales.
    """
    outputs = y.shape[1]
    count, scatter = (0, 0.0) if repeats is None else repeats
    n = len(y) + count
    rates = torch.exp(-torch.from_numpy(np.asarray(log_scales, dtype=np.float64))).to(Z)
    kernel = kernel.with_metric(Mahalanobis(rates.expand(Z.shape[1])))
    noise = math.exp(log_noise)
    x = kernel.prepare(Z)
    A, terms = kernel.values_and_terms(x, x)
    A.diagonal().copy_(kernel.prepared_diagonal(x))
    noises = torch.full_like(y[:, 0], noise) if weights is None else noise / weights
    A.diagonal().add_(noises)
    solved = inverted(A)
    if solved is None:
        return Evidence(math.inf, np.zeros(len(log_scales)), 0.0)
    inverse, log_determinant = solved
    a = inverse @ y
    # For a constant target q is 0; the smallest positive number keeps its logarithm finite.
    q = ((y * a).sum(dim=0) + scatter / noise).clamp(min=torch.finfo(y.dtype).tiny)
    log_determinant = log_determinant + count * log_noise
    s = q / n if output_scales is None else output_scales
    value = 0.5 * ((torch.log(2 * math.pi * s) + q / (n * s)).mean() + log_determinant / n)
    of_noise = (noises[:, None] * a.square()).sum(dim=0) + scatter / noise
    by_noise = 0.5 * (((noises * inverse.diagonal()).sum() + count) / n - (of_noise / (n * s)).mean())
    G = inverse.div_(n).addmm_(a / (n * s), a.T, alpha=-1.0 / outputs)
    by_scales = length_scale_derivatives(terms, G, Z.shape[1])
    by_scales = by_scales.sum(dim=0, keepdim=True) if len(log_scales) == 1 else by_scales
    return Evidence(float(value), by_scales.cpu().numpy(), float(by_noise))


def matrix_evidence(
    K: Tensor, y: Tensor, log_noise: float, weights: Tensor | None = None, repeats: tuple[int, Tensor] | None = None
) -> float:
    """Return the value of `negative_log_evidence` for a given kernel matrix, without derivatives, in O(n^3)."""
    count, scatter = (0, 0.0) if repeats is None else repeats
    n, noise = len(y) + count, math.exp(log_noise)
    A = K.clone()
    A.diagonal().add_(noise if weights is None else noise / weights)
    lower, failed = torch.linalg.cholesky_ex(A)
    if failed:
        return math.inf
    half = torch.linalg.solve_triangular(lower, y, upper=False)
    q = (half.square().sum(dim=0) + scatter / noise).clamp(min=torch.finfo(y.dtype).tiny)
    log_determinant = 2 * lower.diagonal().log().sum() + count * log_noise
    return 0.5 * float(torch.log(2 * math.pi * math.e * q / n).mean() + log_determinant / n)


def maximize_evidence(
    kernel: Kernel,
    Z: Tensor,
    y: Tensor,
    log_scales: np.ndarray,
    log_noise: float,
    *,
    weights: Tensor | None = None,
    repeats: tuple[int, Tensor] | None = None,
    output_scales: Tensor | None = None,
    noise_floor: float = 1e-6,
    max_iter: int = 50,
    noise_is_free: bool = True,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Maximum:
    """Maximize the evidence over length scales and noise by L-BFGS-B; see `negative_log_evidence` for the arguments.

    With `log_scales` of length r each column has its own length scale (ARD); with length 1 all columns share one. The
    noise stays fixed if `noise_is_free` is False; otherwise it is at least `noise_floor`. `out_of_time` is called after
    each evaluation; once it returns True, the best parameters so far are returned.
    """
    noise_bounds = (math.log(noise_floor), math.log(MOST_NOISE)) if noise_is_free else (log_noise, log_noise)
    begin = min(log_noise, 0.0) if noise_is_free else log_noise
    start = np.append(np.clip(log_scales, *LOG_SCALE_BOUNDS), np.clip(begin, *noise_bounds))
    best = Maximum(start[:-1], float(start[-1]), math.inf, 0)
    count = 0

    def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best, count
        count += 1
        found = negative_log_evidence(kernel, Z, y, theta[:-1], float(theta[-1]), weights, repeats, output_scales)
        if found.value < best.value:
            best = Maximum(theta[:-1].copy(), float(theta[-1]), found.value, count)
        if out_of_time():
            raise StopIteration
        # If the matrix cannot be factorized, the line search needs a large number so that it steps back.
        value = found.value if math.isfinite(found.value) else best.value + 1e3 if count > 1 else 1e10
        return value, np.append(found.by_scales, found.by_noise)

    bounds = [LOG_SCALE_BOUNDS] * (len(start) - 1) + [noise_bounds]
    with contextlib.suppress(StopIteration), threads_for(len(y)):
        minimize(
            evaluate, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": max_iter, "ftol": FTOL}
        )
    return best._replace(n_evaluations=count)
