"""Kernel discriminants: the directions with the largest ratio of total to regularized within-class variance.

Notation of the note `kernel-discriminant`: u = K alpha are a functional's values on the rows, C centers, P replaces
each value by the mean of its class, C_w = I - P. Total and within-class variances are u^T C u / n and u^T C_w u / n.
"""

from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor

from mercer.exceptions import NumericalWarning, warn_user
from mercer.linalg import (
    EigenPairs,
    block_krylov_eigenpairs,
    cholesky,
    generalized_eigenpairs,
    inverse_root,
    top_eigenpairs,
)

# Up to this many rows the whole eigendecomposition is quicker than Lanczos steps.
DENSE_ROWS = 200
# Leverages may be off by this much, relative to 1 - leverage, if that makes them cheaper.
LEVERAGE_ERROR = 1e-3
# How leverages change from one ridge to another is worked out on at most this many rows, and not at all for ridges
# within this factor of each other.
LEVERAGE_ROWS = 1000
SAME_RIDGE = 1.05
# Of the roots that landmark components are, relative.
ROOT_ERROR = 1e-15
# A ratio above 1 by this much belongs to the classes; one without class means is that of a principal component.
CLASS_RATIO = 1.0 + 1e-6
# A ratio below this, relative to the largest, is rounding.
NO_VARIANCE = 1e-10


class Groups(NamedTuple):
    """Which class each row has: `of_row` of shape (n,), from 0 to c - 1, and how many rows each class has."""

    of_row: Tensor
    counts: Tensor

    @classmethod
    def from_index(cls, index: Tensor, n_groups: int, dtype: torch.dtype = torch.float64) -> "Groups":
        return cls(index, torch.bincount(index, minlength=n_groups).to(dtype))

    def of_rows(self, rows: np.ndarray) -> "Groups":
        """Return the classes of some rows, numbered as they are."""
        chosen = self.of_row[torch.from_numpy(rows).to(self.of_row.device)]
        return Groups.from_index(chosen, len(self.counts), self.counts.dtype)

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
        u = K alpha, scaled to unit regularized within-class variance.
    ratios : tensor of shape (k,)
        The regularized ratios, the eigenvalues of (13).
    left_out : tensor of shape (n, k)
        What each row's values would be had it not been in the fit, the scores of the classes held.
    """

    alpha: Tensor
    values: Tensor
    ratios: Tensor
    left_out: Tensor


def centered(U: Tensor) -> Tensor:
    """Return C U: columns with mean zero."""
    return U - U.mean(dim=0)


def double_centered(K: Tensor) -> Tensor:
    """Return C K C, the kernel of the centered features."""
    rows, columns = K.mean(dim=1, keepdim=True), K.mean(dim=0)
    return (K - rows).sub_(columns - rows.mean())


def smoother_gram(K: Tensor, regularizer: str) -> Tensor:
    """Return the Gram matrix A of the ridge regression behind a regularizer: its smoother is A (A + ridge I)^-1.

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
    w = C u: neither the within-class matrix nor its factor is formed, and one Cholesky factor of A + ridge I, with the
    diagonal of its inverse, is the whole cubic cost.

    Each component is also the ridge regression of a score t = C u / mu + P u on the rows: alpha follows from it. Where
    mu > 1 this can be solved for u: it is mu / (mu - 1) times the regression of its class means P u, less mean(u) / mu,
    with the ridge mu / (mu - 1) ridge. That gives leave-one-out values in which a row's own class has no say
    (`left_out_values`); in t, which holds the fitted u itself, it would have.

    Parameters
    ----------
    K : tensor of shape (n, n)
        Double-centered, if the features are to be centered.
    groups : Groups
    ridge : float
        Above 0.
    regularizer : {"identity", "rkhs"}
        R = I or R = K.
    n_components : int
    intercept : bool, default=True
        Whether K is centered; the mean that was taken out then counts in the leave-one-out values.

    Notes
    -----
    O(n^3) once, about 0.7 n^3 ("rkhs") or 2.7 n^3 ("identity") operations, and O(n^2 c) a step of the eigensolver, some
    five of them; half of the former in float32 where the ridge allows it. As many components as classes, or more, take
    the whole inverse and a dense eigenproblem.
    """
    A = smoother_gram(K, regularizer)
    factor = cholesky(A, shift=ridge)
    leverage = 1.0 - ridge * factor.inverse_diagonal(precision=precision_of_leverages(A, ridge))

    def smooth(U: Tensor) -> Tensor:
        """Return H U."""
        return U - ridge * factor.solve(U)

    J = groups.indicators()
    HJ = smooth(J)
    core = torch.linalg.pinv(torch.eye(J.shape[1], dtype=J.dtype, device=J.device) - J.T @ HJ, hermitian=True)

    def apply_inverse(U: Tensor) -> Tensor:
        return smooth(U) + HJ @ (core @ (HJ.T @ U))

    if n_components < J.shape[1] and len(K) > DENSE_ROWS:
        # All but c - 1 of the eigenvalues are below 1, and the eigenvectors of those lie near the span of C H J.
        pairs = block_krylov_eigenpairs(lambda V: centered(apply_inverse(centered(V))), centered(HJ), n_components)
    else:
        H = factor.inverse() * -ridge
        H.diagonal().add_(1.0)
        pairs = top_eigenpairs(double_centered(H + HJ @ core @ HJ.T), n_components)
    mu, W = significant(pairs)
    U = apply_inverse(W)
    U = U * unit_within(U, mu) * steady_signs(U)
    T = scores(U, mu, *own_means(U, groups))
    alpha = factor.solve(T) if regularizer == "rkhs" else K @ factor.solve(T)
    leverages = leverages_of_components(K, leverage, ridge, mu, regularizer, intercept)
    share = 1.0 / len(K) if intercept else 0.0
    return Discriminants(alpha, U, mu, left_out_values(U, mu, *own_means(U, groups), leverage, leverages, share))


def precision_of_leverages(A: Tensor, ridge: float) -> torch.dtype | None:
    """Return float32 where the factor of A + ridge I can be inverted in it with leverages right to a thousandth.

    The condition number of A + ridge I is at most 1 + trace A / ridge, that of the factor the root of that.
    """
    condition = 1.0 + float(A.diagonal().sum()) / ridge
    return torch.float32 if torch.finfo(torch.float32).eps * condition**0.5 < LEVERAGE_ERROR else None


def unregularized_discriminants(
    K: Tensor, groups: Groups, n_components: int, *, intercept: bool = True
) -> Discriminants:
    """Solve (12), that is (13) with ridge 0, on the range of the within-class matrix.

    A direction in which the classes have no spread at all has no finite ratio and is left out, with a warning: any
    ridge above 0 would put it first.
    """
    T = K.T @ centered(K)
    within = K - groups.project(K)
    pairs = generalized_eigenpairs(T, within.T @ within, n_components)
    root = inverse_root(K)
    spread, rank = (torch.linalg.matrix_rank(M, hermitian=True) for M in (within.T @ within, T))
    if spread < rank:
        warn_user(
            f"ridge=0: {int(rank - spread)} directions have no variance within the classes and so no finite ratio: "
            "they are left out. A ridge above 0 keeps them.",
            NumericalWarning,
        )
    mu, alpha = significant(pairs)
    alpha = alpha * len(K) ** 0.5 * steady_signs(K @ alpha)
    U = K @ alpha
    leverage = ((K @ root) * root).sum(dim=1)
    leverages, share = leverage[:, None].expand_as(U), 1.0 / len(K) if intercept else 0.0
    return Discriminants(alpha, U, mu, left_out_values(U, mu, *own_means(U, groups), leverage, leverages, share))


class LandmarkBasis(NamedTuple):
    """Functions of m landmarks in coordinates in which the regularizer is I and the total covariance is diagonal.

    Attributes
    ----------
    V : tensor of shape (m, r)
        V^T R V = I, V^T T V = diag(spread), T = sum_i (k_i - mean)(k_i - mean)^T.
    spread : tensor of shape (r,)
    mean : tensor of shape (m,)
        The mean of k over the rows.
    group_means : tensor of shape (c, r)
        Of the coordinates V^T (k - mean), class by class.
    counts : tensor of shape (c,)
        How many rows of each class the sums are over.
    """

    V: Tensor
    spread: Tensor
    mean: Tensor
    group_means: Tensor
    counts: Tensor


def landmark_basis(
    total: Tensor, group_sums: Tensor, counts: Tensor, R: Tensor | None, rounding: float = 0.0
) -> LandmarkBasis:
    """Diagonalize the pencil (T, R) from sums over the rows, once for all ridges.

    Parameters
    ----------
    total : tensor of shape (m, m)
        sum_i k_i k_i^T.
    group_sums : tensor of shape (c, m)
        The sum of k_i in each class.
    counts : tensor of shape (c,)
    R : tensor of shape (m, m) or None
        None stands for the identity.
    rounding : float, default=0.0
        Of the kernel values, relative. Directions in which R is smaller than that, relative to its largest eigenvalue,
        are left out: values divided by the root of so little are noise.
    """
    n = counts.sum()
    mean = group_sums.sum(dim=0) / n
    T = total - n * torch.outer(mean, mean)
    pairs = top_eigenpairs(T) if R is None else generalized_eigenpairs(T, R, tolerance=max(rounding, rounding_of(R)))
    group_means = (group_sums / counts[:, None] - mean) @ pairs.vectors
    return LandmarkBasis(pairs.vectors, pairs.values.clamp(min=0.0), mean, group_means, counts)


def rounding_of(R: Tensor) -> float:
    """Return the error of the eigenvalues of a matrix, relative to the largest."""
    return len(R) * torch.finfo(R.dtype).eps


def landmark_discriminants(basis: LandmarkBasis, ridge: float, n_components: int) -> tuple[Tensor, Tensor]:
    """Solve (13) in the basis: return the coefficients beta of shape (r, k) in it, and the ratios.

    The denominator is diag(spread + ridge) - G G^T with the c columns sqrt(n_y) (class mean) in G. Components with
    ratios above 1 regress their class means with a ridge rho of their own (`class_components`); only if more are asked
    for is there an eigenproblem of size r.
    """
    G = (basis.counts.sqrt()[:, None] * basis.group_means).T
    if n_components <= n_class_components(basis, ridge):
        beta, mu = class_components(basis.spread, G, ridge, n_components)
    else:
        root = basis.spread.sqrt()
        core = torch.diag(basis.spread + ridge) - G @ G.T
        mu, W = significant(top_eigenpairs(root[:, None] * torch.linalg.solve(core, torch.diag(root)), n_components))
        beta = torch.linalg.solve(core, root[:, None] * W)
    variances = (basis.spread[:, None] * beta.square()).sum(dim=0) / basis.counts.sum()
    return beta * (mu / variances).sqrt() * steady_signs(basis.group_means @ beta), mu


def n_class_components(basis: LandmarkBasis, ridge: float) -> int:
    """Return how many components of (13) have a ratio above 1: as many as G^T G has eigenvalues above the ridge."""
    G = (basis.counts.sqrt()[:, None] * basis.group_means).T
    return int((torch.linalg.eigvalsh(G.T @ G) > CLASS_RATIO * ridge).sum())


def class_components(spread: Tensor, G: Tensor, ridge: float, n_components: int) -> tuple[Tensor, Tensor]:
    """Return the components of (13) with ratios above 1, of shape (r, k), and these, by k roots of one variable.

    Such a component is beta = diag(1 / (spread + rho)) G theta, with the class scores theta an eigenvector of
    S(rho) = rho G^T diag(1 / (spread + rho)) G of eigenvalue `ridge`, and its ratio is mu = rho / (rho - ridge). The
    eigenvalues of S grow with rho, so that the k-th meets the ridge once: O(r c^2 + c^3) for each of some ten steps to
    a root, and no eigenproblem of size r, which is hard where ratios are little above 1.
    """

    def S(rho: float) -> Tensor:
        return G.T @ ((rho / (spread + rho))[:, None] * G)

    def excess(rho: float, k: int) -> float:
        return float(torch.linalg.eigvalsh(S(rho))[-1 - k]) - ridge

    betas: list[Tensor] = []
    rhos: list[float] = []
    pairs = None
    for k in range(n_components):
        low = rhos[-1] if rhos else ridge
        high = 2.0 * low
        while excess(high, k) < 0:
            low, high = high, 2.0 * high
        # Of equal roots, the one before is this one too, and rounding may put it on either side of zero.
        rho = low if excess(low, k) >= 0 else float(brentq(excess, low, high, args=(k,), xtol=ROOT_ERROR * low))
        # Of equal roots the eigenvectors must come from one decomposition, to be orthogonal.
        if pairs is None or rho > CLASS_RATIO * rhos[-1]:
            pairs = top_eigenpairs(S(rho))
        rhos.append(rho)
        betas.append((G @ pairs.vectors[:, k]) / (spread + rho))
    own = torch.tensor(rhos, dtype=G.dtype, device=G.device)
    return torch.stack(betas, dim=1), own / (own - ridge).clamp(min=torch.finfo(G.dtype).eps * ridge)


def own_means(U: Tensor, groups: Groups) -> tuple[Tensor, Tensor]:
    """Return the mean of each row's class, P u, and that of all rows."""
    return groups.project(U), U.mean(dim=0)


def scores(U: Tensor, mu: Tensor, of_class: Tensor, of_all: Tensor) -> Tensor:
    """Return t = C u / mu + P u, of which u is the ridge regression on the rows; the means are `own_means`."""
    return (U - of_all) / mu + of_class


def effective_ridges(ridge: float, mu: Tensor) -> Tensor:
    """Return the ridge with which each component regresses its class means; the ridge itself where it has none."""
    return torch.where(mu > CLASS_RATIO, ridge * mu / (mu - 1.0).clamp(min=CLASS_RATIO - 1.0), ridge)


def leverages_of_components(
    K: Tensor, leverage: Tensor, ridge: float, mu: Tensor, regularizer: str, intercept: bool
) -> Tensor:
    """Return the leverages H_ii at the effective ridge of each component, of shape (n, k), given those at the ridge.

    Up to 1000 rows exact, from one eigendecomposition. Of more, every n/1000-th row says by how much the logit of a
    leverage changes on average from the one ridge to the other.
    """
    ridges = torch.cat([mu.new_full((1,), ridge), effective_ridges(ridge, mu)])
    if bool((ridges <= SAME_RIDGE * ridge).all()):
        return leverage[:, None].expand(-1, len(mu))
    step = -(-len(K) // LEVERAGE_ROWS)
    part = K if step == 1 else K[::step, ::step].contiguous()
    part = double_centered(part) if intercept and step > 1 else part
    values, V = torch.linalg.eigh(part)
    values = values.clamp(min=0.0) if regularizer == "rkhs" else values.square()
    found = V.square() @ (values[:, None] / (values[:, None] + ridges))
    if step == 1:
        return found[:, 1:]
    logits = torch.logit(found, eps=LEVERAGE_ERROR)
    shift = (logits[:, 1:] - logits[:, :1]).mean(dim=0)
    return torch.sigmoid(torch.logit(leverage, eps=torch.finfo(leverage.dtype).eps)[:, None] + shift)


def left_out_values(
    U: Tensor, mu: Tensor, of_class: Tensor, of_all: Tensor, leverage: Tensor, leverages: Tensor, share: float
) -> Tensor:
    """Return what each row's values would be had it not been in the fit.

    A component with mu > 1 is s = mu / (mu - 1) times the ridge regression of its class means, m = P u - mean(u) / mu,
    with the effective ridge. These held, row i left out gets (u_i - s h_i m_i) / (1 - h_i), h_i its leverage at that
    ridge. For the others the score t = C u / mu + P u is held, which gives t_i - (t_i - u_i) / (1 - H_ii). The mean of
    all rows, where there is an intercept, has leverage 1/n beside.

    Parameters
    ----------
    U : tensor of shape (n, k)
        Of all rows of the fit, or of some.
    mu : tensor of shape (k,)
    of_class : tensor of shape (n, k)
        P u: the mean of each row's class, over all rows of the fit.
    of_all : tensor of shape (k,)
        The mean over all rows of the fit.
    leverage : tensor of shape (n,)
        At the ridge of the discriminants.
    leverages : tensor of shape (n, k)
        At the effective ridge of each component.
    share : float
        The leverage of a row in the mean: 1/n of the rows of the fit, or 0 where features are not centered.
    """
    eps = torch.finfo(U.dtype).eps
    T = scores(U, mu, of_class, of_all)
    held = T - (T - U) / (1.0 - leverage - share).clamp(min=eps)[:, None]
    s = mu / (mu - 1.0).clamp(min=CLASS_RATIO - 1.0)
    h, means = leverages + share, of_class - of_all / mu
    return torch.where(mu > CLASS_RATIO, (U - s * h * means) / (1.0 - h).clamp(min=eps), held)


def left_out_or_own(found: Discriminants, groups: Groups) -> Tensor:
    """Return the leave-one-out values, and the own ones of a row that is the only one of its class."""
    alone = groups.counts[groups.of_row] == 1
    return torch.where(alone[:, None], found.values, found.left_out)


def significant(pairs: EigenPairs) -> EigenPairs:
    """Drop components without variance; H is known as I - ridge (A + ridge I)^-1, so that its zeros are rounded."""
    if not len(pairs.values):
        return pairs
    kept = pairs.values > NO_VARIANCE * pairs.values.max().clamp(min=1.0)
    return EigenPairs(pairs.values[kept], pairs.vectors[:, kept])


def steady_signs(U: Tensor) -> Tensor:
    """Return the signs that make the largest entry of each column positive: eigenvectors come with either sign.

    The first of those that are largest up to rounding counts, so that ties are broken the same way each time.
    """
    large = U.abs() >= (1.0 - 1e-6) * U.abs().amax(dim=0)
    first = large & (large.cumsum(dim=0) == 1)
    return (U * first).sum(dim=0).sign()


def unit_within(U: Tensor, mu: Tensor) -> Tensor:
    """Return the scales that make the regularized within-class variance of each column 1, the total variance mu."""
    return (mu / centered(U).square().mean(dim=0)).sqrt()


def variance_ratios(U: Tensor, groups: Groups) -> Tensor:
    """Return the unregularized ratio (10) of total to within-class variance of each column."""
    return centered(U).square().sum(dim=0) / (U - groups.project(U)).square().sum(dim=0)
