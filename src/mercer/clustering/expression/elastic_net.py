"""Self-expression with few coefficients by the elastic net (EnSC) and by the lasso (SSC)."""

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
        # The systems are small, however many points there are.
        with threads_for(1):
            return elastic_net(K, k, own, strength=strength, l1_ratio=l1_ratio, tolerance=tolerance, max_iter=max_iter)

    return coefficients


class ElasticNetExpression(SelfExpression):
    """c minimizes l1_ratio |c|_1 + (1 - l1_ratio)/2 |c|^2 + gamma/2 |phi(x) - phi(Z) c|^2, x left out of Z (EnSC).

    Elastic net subspace clustering, You, Li, Robinson and Vidal (2016). The l1 term joins a point to few others, mostly
    of its own subspace, and alone may break a subspace apart; the l2 term joins more.

    Parameters
    ----------
    strength : float, default=50.0
        How much a good fit is worth, above 1: gamma = strength l1_ratio / max_i |phi(z_i)^T phi(x)|, each target with
        a gamma of its own and left out of the maximum. At 1 all coefficients are zero. It is `gamma` of the authors'
        code (with its gamma_nz=True), where 5 to 500 is advised. The data's scale does not matter.
    l1_ratio : float, default=0.9
        lambda of the paper, tau of its code: above 0, and 1 for the lasso.
    tolerance : float, default=1e-6
        By how much, relative to its bound, the correlation of an atom with the residual may break the optimality
        conditions. The objective is then at most this share above the least one (its duality gap).
    max_iter : int, default=1000
        Steps of the active-set method, for all targets of a block together.
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
    """c minimizes |c|_1 + gamma/2 |phi(x) - phi(Z) c|^2, x left out of Z: the lasso form of sparse subspace clustering.

    Elhamifar and Vidal (2013) set gamma = alpha / mu for all points, mu the least over points x of
    max_i |phi(z_i)^T phi(x)|. Here mu is each point's own maximum, as in the code of You et al. (2016): a point's
    coefficients do not depend on which others are expressed beside it.

    Parameters
    ----------
    strength : float, default=50.0
        alpha, above 1: gamma = strength / max_i |phi(z_i)^T phi(x)|, the target itself left out of the maximum.
    tolerance : float, default=1e-6
    max_iter : int, default=1000
        Both as in `ElasticNetExpression`.
    """

    is_sparse = True

    def __init__(self, strength: float = 50.0, tolerance: float = 1e-6, max_iter: int = 1000) -> None:
        self.strength = strength
        self.tolerance = tolerance
        self.max_iter = max_iter

    def solver(self, K: Tensor) -> Solver:
        return _checked_solver(K, self.strength, 1.0, self.tolerance, self.max_iter)
