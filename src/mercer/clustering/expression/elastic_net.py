"""Sparse self-expression by the elastic net (EnSC) and by the lasso (SSC)."""

from torch import Tensor

from mercer.checks import check_count, check_number
from mercer.clustering.expression.active_set import elastic_net
from mercer.clustering.expression.base import SelfExpression, Solver
from mercer.linalg import threads_for


def _checked_solver(K: Tensor, strength: float, l1_ratio: float, tolerance: float, max_iter: int) -> Solver:
    strength = check_number("strength", strength, above=1.0)
    l1_ratio = check_number("l1_ratio", l1_ratio, above=0.0, at_most=1.0)
    tolerance = check_number("tolerance", tolerance, above=0.0)
    max_iter = check_count("max_iter", max_iter)

    def coefficients(k: Tensor, norms: Tensor, own: Tensor | None) -> Tensor:
        # The linear systems are small, however many points there are.
        with threads_for(1):
            return elastic_net(K, k, own, strength=strength, l1_ratio=l1_ratio, tolerance=tolerance, max_iter=max_iter)

    return coefficients


class ElasticNetExpression(SelfExpression):
    """Self-expression by the elastic net, with x left out of Z (EnSC).

    c minimizes l1_ratio |c|_1 + (1 - l1_ratio)/2 |c|^2 + gamma/2 |phi(x) - phi(Z) c|^2 (You, Li, Robinson and Vidal
    2016). The l1 term links a point to few others, most of them of its own subspace. Alone it may break a subspace into
    parts. The l2 term adds links.

    Parameters
    ----------
    strength : float, default=50.0
        The weight of a good fit, above 1: gamma = strength l1_ratio / max_i |phi(z_i)^T phi(x)|. Each target has its
        own gamma, and is left out of the maximum. All coefficients are zero for a strength of 1. This is `gamma` of the
        authors' code (with its gamma_nz=True), where 5 to 500 is advised. The scale of the data does not matter.
    l1_ratio : float, default=0.9
        lambda of the paper, tau of its code; above 0, and 1 is the lasso.
    tolerance : float, default=1e-6
        The share by which the correlation of an atom with the residual may exceed the bound of the optimality
        conditions. The objective is then at most this share above its minimum (by the duality gap).
    max_iter : int, default=1000
        The largest number of steps of the active-set method, for all targets of a block together.
    """

    is_sparse = True

    def __init__(
        self, strength: float = 50.0, l1_ratio: float = 0.9, tolerance: float = 1e-6, max_iter: int = 1000
    ) -> None:
        self.strength = strength
        self.l1_ratio = l1_ratio
        self.tolerance = tolerance
        self.max_iter = max_iter

    def solver(self, K: Tensor) -> Solver:
        return _checked_solver(K, self.strength, self.l1_ratio, self.tolerance, self.max_iter)


class LassoExpression(SelfExpression):
    """Self-expression by the lasso, with x left out of Z (SSC, sparse subspace clustering).

    c minimizes |c|_1 + gamma/2 |phi(x) - phi(Z) c|^2. Elhamifar and Vidal (2013) use one gamma = alpha / mu for all
    points, where mu is the minimum over points x of max_i |phi(z_i)^T phi(x)|. Here mu is each point's own maximum, as
    in the code of You et al. (2016). The coefficients of a point then do not depend on which other points are expressed
    together with it.

    Parameters
    ----------
    strength : float, default=50.0
        alpha, above 1: gamma = strength / max_i |phi(z_i)^T phi(x)|, with the target itself left out of the maximum.
    tolerance : float, default=1e-6
        As in `ElasticNetExpression`.
    max_iter : int, default=1000
        As in `ElasticNetExpression`.
    """

    is_sparse = True

    def __init__(self, strength: float = 50.0, tolerance: float = 1e-6, max_iter: int = 1000) -> None:
        self.strength = strength
        self.tolerance = tolerance
        self.max_iter = max_iter

    def solver(self, K: Tensor) -> Solver:
        return _checked_solver(K, self.strength, 1.0, self.tolerance, self.max_iter)
