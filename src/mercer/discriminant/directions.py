"""Kernel discriminants: the directions with the largest ratio of total to regularised within-class variance.

Notation of the note `kernel-discriminant`: u = K alpha are a functional's values on the rows, C centres, P replaces
each value by the mean of its class, C_w = I - P. Total and within-class variances are u^T C u / n and u^T C_w u / n.
"""

import warnings
from typing import NamedTuple

import torch
from torch import Tensor

from mercer.exceptions import NumericalWarning
from mercer.linalg import (
    EigenPairs,
    cholesky,
    generalized_eigenpairs,
    inverse_root,
    lanczos_eigenpairs,
    top_eigenpairs,
)

# Up to this many rows the whole eigendecomposition is quicker than Lanczos steps.
DENSE_ROWS = 200
# A ratio below this, relative to the largest, is rounding.
NO_VARIANCE = 1e-10


class Groups(NamedTuple):
    """Which class each row has: `of_row` of shape (n,), from 0 to c - 1, and how many rows each class has."""

    of_row: Tensor
    counts: Tensor

    @classmethod
    def from_index(cls, index: Tensor, n_groups: int, dtype: torch.dtype = torch.float64) -> "Groups":
        return cls(index, torch.bincount(index, minlength=n_groups).to(dtype))

    def sums(self, U: Tensor) -> Tensor:
        """Return the sum of U's rows in each class, of shape (c, k)."""
        return U.new_zeros((len(self.counts), U.shape[1])).index_add_(0, self.of_row, U)

    def means(self, U: Tensor) -> Tensor:
        """Return the mean of U's rows in each class, of shape (c, k)."""
        return self.sums(U) / self.counts[:, None].to(U.dtype)

    def project(self, U: Tensor) -> Tensor:
        """Return P U: every row replaced by the mean of its class."""
        return self.means(U)[self.of_row]

    def indicators(self) -> Tensor:
        """Return J of shape (n, c) with orthonormal columns and P = J J^T."""
        J = self.counts.new_zeros((len(self.of_row), len(self.counts)))
        J[torch.arange(len(self.of_row)), self.of_row] = self.counts[self.of_row].rsqrt()
        return J


class Discriminants(NamedTuple):
    """Components in the columns, the largest ratio first.

    Attributes
    ----------
    alpha : tensor of shape (n, k), or (m, k) with landmarks
        The coefficients of the functionals.
    values : tensor of shape (n, k)
        u = K alpha, scaled to unit regularised within-class variance.
    ratios : tensor of shape (k,)
        The regularised ratios, the eigenvalues of (13).
    left_out : tensor of shape (n, k)
        What each row's values would be had it not been in the fit, its class scores held.
    """

    alpha: Tensor
    values: Tensor
    ratios: Tensor
    left_out: Tensor


def centred(U: Tensor) -> Tensor:
    """Return C U: columns with mean zero."""
    return U - U.mean(dim=0)


def double_centred(K: Tensor) -> Tensor:
    """Return C K C, the kernel of the centred features."""
    K = K - K.mean(dim=0)
    return K - K.mean(dim=1, keepdim=True)


def smoother_gram(K: Tensor, regularizer: str) -> Tensor:
    """Return the Gram matrix A of the ridge regression behind a regulariser: its smoother is A (A + ridge I)^-1.

    Functions u = K alpha with the penalty alpha^T K alpha ("rkhs") have A = K; with |alpha|^2 ("identity") A = K K.
    """
    return K if regularizer == "rkhs" else K @ K


def exact_discriminants(
    K: Tensor, groups: Groups, ridge: float, regularizer: str, n_components: int, *, intercept: bool = True
) -> Discriminants:
    """Solve (13) on all rows: max alpha^T K C K alpha / alpha^T (K C_w K + ridge R) alpha, components uncorrelated.

    In the values u = K alpha the denominator is u^T (C_w + ridge K^-1 R K^-1) u =: u^T D u. With the smoother
    H = A (A + ridge I)^-1 of ridge regression, D = H^-1 - P, and since P = J J^T has rank c, Woodbury's identity gives
    D^-1 = H + H J (I - J^T H J)^-1 J^T H. So C u = mu D u becomes the symmetric eigenproblem C D^-1 C w = mu w with
    w = C u: neither the within-class matrix nor its factor is formed, and one Cholesky factor of A + ridge I, with its
    inverse, is the whole cubic cost.

    Each component is also the ridge regression of a score t = C u / mu + P u on the rows, which gives its leave-one-out
    values (t held): t_i - (t_i - u_i) / (1 - H_ii).

    Parameters
    ----------
    K : tensor of shape (n, n)
        Double-centred, if the features are to be centred.
    groups : Groups
    ridge : float
        Above 0.
    regularizer : {"identity", "rkhs"}
        R = I or R = K.
    n_components : int
    intercept : bool, default=True
        Whether K is centred; the mean that was taken out then counts in the leave-one-out values.

    Notes
    -----
    O(n^3) once, about 1.0 n^3 ("rkhs") or 3.0 n^3 ("identity") operations, and O(n^2) a step of the eigensolver.
    """
    shifted = smoother_gram(K, regularizer)
    shifted = shifted.clone() if shifted is K else shifted
    shifted.diagonal().add_(ridge)
    inverse = cholesky(shifted).inverse()
    del shifted
    leverage = 1.0 - ridge * inverse.diagonal()
    H = inverse * -ridge
    H.diagonal().add_(1.0)

    J = groups.indicators()
    HJ = H @ J
    core = torch.linalg.pinv(torch.eye(J.shape[1], dtype=J.dtype, device=J.device) - J.T @ HJ, hermitian=True)

    def apply_inverse(U: Tensor) -> Tensor:
        return H @ U + HJ @ (core @ (HJ.T @ U))

    if n_components < J.shape[1] and len(K) > DENSE_ROWS:
        start = HJ @ mixture(J.shape[1], like=HJ)
        pairs = lanczos_eigenpairs(lambda V: centred(apply_inverse(centred(V))), start, n_components)
    else:
        pairs = top_eigenpairs(double_centred(H + HJ @ core @ HJ.T), n_components)
    mu, W = significant(pairs)
    U = apply_inverse(W)
    U = U * unit_within(U, mu) * steady_signs(U)
    T = scores(U, mu, groups)
    alpha = inverse @ T if regularizer == "rkhs" else K @ (inverse @ T)
    return Discriminants(alpha, U, mu, left_out_values(T, U, leverage, intercept))


def unregularized_discriminants(
    K: Tensor, groups: Groups, n_components: int, *, intercept: bool = True
) -> Discriminants:
    """Solve (12), that is (13) with ridge 0, on the range of the within-class matrix.

    A direction in which the classes have no spread at all has no finite ratio and is left out, with a warning: any
    ridge above 0 would put it first.
    """
    T = K.T @ centred(K)
    within = K - groups.project(K)
    pairs = generalized_eigenpairs(T, within.T @ within, n_components)
    root = inverse_root(K)
    spread, rank = (torch.linalg.matrix_rank(M, hermitian=True) for M in (within.T @ within, T))
    if spread < rank:
        warnings.warn(
            f"ridge=0: {int(rank - spread)} directions have no variance within the classes and so no finite ratio: "
            "they are left out. A ridge above 0 keeps them.",
            NumericalWarning,
            stacklevel=2,
        )
    mu, alpha = significant(pairs)
    alpha = alpha * len(K) ** 0.5 * steady_signs(K @ alpha)
    U = K @ alpha
    leverage = ((K @ root) * root).sum(dim=1)
    return Discriminants(alpha, U, mu, left_out_values(scores(U, mu, groups), U, leverage, intercept))


class LandmarkBasis(NamedTuple):
    """Functions of m landmarks in coordinates in which the regulariser is I and the total covariance is diagonal.

    Attributes
    ----------
    V : tensor of shape (m, r)
        V^T R V = I, V^T T V = diag(spread), T = sum_i (k_i - mean)(k_i - mean)^T.
    spread : tensor of shape (r,)
    mean : tensor of shape (m,)
        The mean of k over the rows.
    group_means : tensor of shape (c, r)
        Of the coordinates V^T (k - mean), class by class.
    """

    V: Tensor
    spread: Tensor
    mean: Tensor
    group_means: Tensor


def landmark_basis(total: Tensor, group_sums: Tensor, counts: Tensor, R: Tensor | None) -> LandmarkBasis:
    """Diagonalise the pencil (T, R) from sums over the rows, once for all ridges.

    Parameters
    ----------
    total : tensor of shape (m, m)
        sum_i k_i k_i^T.
    group_sums : tensor of shape (c, m)
        The sum of k_i in each class.
    counts : tensor of shape (c,)
    R : tensor of shape (m, m) or None
        None stands for the identity.
    """
    n = counts.sum()
    mean = group_sums.sum(dim=0) / n
    T = total - n * torch.outer(mean, mean)
    pairs = top_eigenpairs(T) if R is None else generalized_eigenpairs(T, R)
    return LandmarkBasis(
        pairs.vectors, pairs.values.clamp(min=0.0), mean, (group_sums / counts[:, None] - mean) @ pairs.vectors
    )


def landmark_discriminants(
    basis: LandmarkBasis, counts: Tensor, ridge: float, n_components: int
) -> tuple[Tensor, Tensor]:
    """Solve (13) in the basis: return the coefficients beta of shape (r, k) in it, and the ratios.

    The denominator is diag(spread + ridge) - G G^T with the c columns sqrt(n_y) (class mean) in G, so that Woodbury's
    identity and the top eigenvectors of a matrix of size r are all that is needed.
    """
    G = (counts.sqrt()[:, None] * basis.group_means).T
    root = basis.spread.sqrt()
    inverse = 1.0 / (basis.spread + ridge)
    core = torch.linalg.pinv(
        torch.eye(G.shape[1], dtype=G.dtype, device=G.device) - G.T @ (inverse[:, None] * G), hermitian=True
    )

    def apply_inverse(B: Tensor) -> Tensor:
        scaled = inverse[:, None] * B
        return scaled + inverse[:, None] * (G @ (core @ (G.T @ scaled)))

    def product(B: Tensor) -> Tensor:
        return root[:, None] * apply_inverse(root[:, None] * B)

    if n_components < G.shape[1] and len(root) > DENSE_ROWS:
        pairs = lanczos_eigenpairs(product, root * (G @ mixture(G.shape[1], like=G)), n_components)
    else:
        pairs = top_eigenpairs(product(torch.eye(len(root), dtype=G.dtype, device=G.device)), n_components)
    mu, W = significant(pairs)
    beta = apply_inverse(root[:, None] * W)
    variances = (basis.spread[:, None] * beta.square()).sum(dim=0) / counts.sum()
    return beta * (mu / variances).sqrt() * steady_signs(basis.group_means @ beta), mu


def scores(U: Tensor, mu: Tensor, groups: Groups) -> Tensor:
    """Return t = C u / mu + P u, of which u is the ridge regression on the rows."""
    return centred(U) / mu + groups.project(U)


def left_out_values(T: Tensor, U: Tensor, leverage: Tensor, intercept: bool) -> Tensor:
    """Return the leave-one-out values t_i - (t_i - u_i) / (1 - H_ii); the mean of all rows has leverage 1/n."""
    rest = 1.0 - leverage - (1.0 / len(U) if intercept else 0.0)
    return T - (T - U) / rest.clamp(min=torch.finfo(U.dtype).eps)[:, None]


def significant(pairs: EigenPairs) -> EigenPairs:
    """Drop components without variance; H is known as I - ridge (A + ridge I)^-1, so that its zeros are rounded."""
    if not len(pairs.values):
        return pairs
    kept = pairs.values > NO_VARIANCE * pairs.values.max().clamp(min=1.0)
    return EigenPairs(pairs.values[kept], pairs.vectors[:, kept])


def mixture(n: int, like: Tensor) -> Tensor:
    """Return weights that differ, for a first Lanczos vector: with equal ones, balanced classes would cancel out."""
    return torch.arange(1, n + 1, dtype=like.dtype, device=like.device)


def steady_signs(U: Tensor) -> Tensor:
    """Return the signs that make the largest entry of each column positive: eigenvectors come with either sign.

    The first of those that are largest up to rounding counts, so that ties are broken the same way each time.
    """
    large = U.abs() >= (1.0 - 1e-6) * U.abs().amax(dim=0)
    first = large & (large.cumsum(dim=0) == 1)
    return (U * first).sum(dim=0).sign()


def unit_within(U: Tensor, mu: Tensor) -> Tensor:
    """Return the scales that make the regularised within-class variance of each column 1, the total variance mu."""
    return (mu / centred(U).square().mean(dim=0)).sqrt()


def variance_ratios(U: Tensor, groups: Groups) -> Tensor:
    """Return the unregularised ratio (10) of total to within-class variance of each column."""
    return centred(U).square().sum(dim=0) / (U - groups.project(U)).square().sum(dim=0)
