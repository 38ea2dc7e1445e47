"""Self-expression by ridge regression, with each point left out of its own dictionary in closed form, or kept (LSR)."""

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.clustering.expression.base import SelfExpression, Solver, without_own
from mercer.linalg import cholesky, inverted, largest_eigenvalue


def absolute_ridge(K: Tensor, ridge: float, *, relative: bool) -> float:
    """Return the absolute ridge; a relative one is a share of the largest eigenvalue of K."""
    check_number("ridge", ridge, above=0.0)
    return ridge * max(largest_eigenvalue(K), torch.finfo(K.dtype).tiny) if relative else ridge


def left_out_coefficients(Q: Tensor) -> Tensor:
    """Return the coefficients by which ridge regression expresses each point of a dictionary in all others.

    Column i minimizes |phi(x_i) - sum_{j != i} c_j phi(x_j)|^2 + ridge |c|^2 (equation 3 of KTRR). One inverse
    Q = (K + ridge I)^-1 solves all n problems: off the diagonal, the coefficients are -Q diag(Q)^-1.

    Parameters
    ----------
    Q : tensor of shape (n, n)
        (K + ridge I)^-1.
    """
    C = Q / -Q.diagonal()
    C.fill_diagonal_(0.0)
    return C


class RidgeExpression(SelfExpression):
    """Self-expression by ridge regression, with x left out of Z (KTRR, equation 3, before truncation).

    c minimizes |phi(x) - phi(Z) c|^2 + ridge |c|^2.

    Parameters
    ----------
    ridge : float, default=0.1
        The weight of the penalty.
    relative : bool, default=True
        Whether `ridge` is a share of the largest eigenvalue of the dictionary's kernel matrix.
    """

    def __init__(self, ridge: float = 0.1, relative: bool = True) -> None:
        self.ridge = ridge
        self.relative = relative

    def solver(self, K: Tensor) -> Solver:
        Q = regularized_inverse(K, absolute_ridge(K, self.ridge, relative=self.relative))

        def coefficients(k: Tensor, norms: Tensor, own: Tensor | None) -> Tensor:
            C = Q @ k
            if own is None:
                return C
            # Without point i, the coefficients are c - Q_i (c_i / Q_ii), where Q_i is column i; entry i of it is zero.
            (targets,) = torch.nonzero(own >= 0, as_tuple=True)
            i = own[targets]
            C[:, targets] -= Q[:, i] * (C[i, targets] / Q[i, i])
            return without_own(C, own)

        return coefficients

    def within(self, K: Tensor) -> Tensor:
        ridge = absolute_ridge(K, self.ridge, relative=self.relative)
        return left_out_coefficients(regularized_inverse(K, ridge))


class LeastSquaresExpression(RidgeExpression):
    """Self-expression by ridge regression, with x kept in Z (LSR, Lu et al. 2012, its second form).

    c minimizes |phi(x) - phi(Z) c|^2 + ridge |c|^2.

    Parameters
    ----------
    ridge : float, default=0.1
        The weight of the penalty.
    relative : bool, default=True
        Whether `ridge` is a share of the largest eigenvalue of the dictionary's kernel matrix.
    """

    def solver(self, K: Tensor) -> Solver:
        solve = super().solver(K)
        return lambda k, norms, own: solve(k, norms, None)

    def within(self, K: Tensor) -> Tensor:
        return self.solver(K)(K, K.diagonal(), None)


def regularized_inverse(K: Tensor, ridge: float) -> Tensor:
    """Return (K + ridge I)^-1."""
    A = K.clone()
    A.diagonal().add_(ridge)
    found = inverted(A)
    return cholesky(K, shift=ridge).inverse() if found is None else found[0]
