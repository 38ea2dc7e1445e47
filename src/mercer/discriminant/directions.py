"""Kernel discriminants: the directions with the largest ratio of total to regularized within-class variance.

The notation is that of the note `kernel-discriminant`: u = K alpha are the values of a functional on the rows, C is the
centering matrix, P replaces each value by the mean of its class, and C_w = I - P. The total and the within-class
variance are u^T C u / n and u^T C_w u / n.
"""

import torch
from torch import Tensor

from mercer.discriminant.groups import (
    Discriminants,
    Groups,
    centered,
    double_centered,
    significant,
    steady_signs,
    unit_within,
)
from mercer.discriminant.left_out import (
    left_out_values,
    leverages_of_components,
    own_means,
    precision_of_leverages,
    scores,
)
from mercer.exceptions import NumericalWarning, warn_user
from mercer.linalg import (
    block_krylov_eigenpairs,
    cholesky,
    generalized_eigenpairs,
    inverse_root,
    top_eigenpairs,
)

# Up to this many rows, a dense eigendecomposition is faster than the block Krylov solver.
DENSE_ROWS = 200


def smoother_gram(K: Tensor, regularizer: str) -> Tensor:
    """Return the Gram matrix A of the ridge regression with this regularizer, whose smoother is A (A + ridge I)^-1.

    For functions u = K alpha with the penalty alpha^T K alpha ("rkhs"), A = K; with |alpha|^2 ("identity"), A = K K.
    """
    return K if regularizer == "rkhs" else K @ K


def exact_discriminants(
    K: Tensor, groups: Groups, ridge: float, regularizer: str, n_components: int, *, intercept: bool = True
) -> Discriminants:
    """Maximize alpha^T K C K alpha / alpha^T (K C_w K + ridge R) alpha over uncorrelated components, (13), on all rows.

    In terms of the values u = K alpha, the denominator is u^T (C_w + ridge K^-1 R K^-1) u =: u^T D u. With the smoother
    H = A (A + ridge I)^-1 of ridge regression, D = H^-1 - P. Since P = J J^T has rank c, Woodbury's identity gives
    D^-1 = H + H J (I - J^T H J)^-1 J^T H. Thus C u = mu D u becomes the symmetric eigenproblem C D^-1 C w = mu w with
    w = C u. The within-class matrix and its factor are never formed. The only cubic cost is one Cholesky factor of
    A + ridge I and the diagonal of its inverse.

    Each component is also the ridge regression of the score t = C u / mu + P u on the rows, which gives alpha. If
    mu > 1, this can be solved for u, which is mu / (mu - 1) times the regression of its class means P u, less
    mean(u) / mu, with the ridge mu / (mu - 1) ridge. This form gives leave-one-out values that do not depend on the
    class of the row itself (`left_out_values`). The score t contains the fitted u, which does depend on it.

    Parameters
    ----------
    K : tensor of shape (n, n)
        The kernel matrix, double-centered if the features are to be centered.
    groups : Groups
        The classes of the rows.
    ridge : float
        A number above 0.
    regularizer : {"identity", "rkhs"}
        R = I or R = K.
    n_components : int
    intercept : bool, default=True
        Whether K is centered. The leave-one-out values then take the estimated mean into account.

    Returns
    -------
    Discriminants

    Notes
    -----
    O(n^3) once: about 0.7 n^3 operations ("rkhs"), half of them in float32 if the ridge allows it, and 2 n^3 more with
    "identity". O(n^2 c) for each of about five steps of the eigensolver. If there are at least as many components as
    classes, the whole inverse and a dense eigenproblem are needed.
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
        # At most c - 1 eigenvalues are above 1, and their eigenvectors lie near the span of C H J.
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


def unregularized_discriminants(
    K: Tensor, groups: Groups, n_components: int, *, intercept: bool = True
) -> Discriminants:
    """Solve (12), which is (13) with ridge 0, on the range of the within-class matrix.

    A direction without any variance within the classes has no finite ratio. It is dropped with a warning, although any
    ridge above 0 would make it the first component.
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
