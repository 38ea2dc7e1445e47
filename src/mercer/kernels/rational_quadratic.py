"""The rational quadratic kernel."""

from typing import Any

from torch import Tensor

from mercer.checks import check_number
from mercer.kernels.radial import RadialKernel


class RationalQuadratic(RadialKernel):
    """k(x, z) = (1 + r^2 / (2 alpha bandwidth^2))^-alpha, r the distance under the metric.

    It is a mixture of Gaussian kernels of all bandwidths. Its tails are heavy where alpha is small, and it tends to the
    Gaussian kernel as alpha grows.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
    alpha : float, default=1.0
        Above 0.
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        None is the identity.
    """

    exact_small_distances = False

    def __init__(self, bandwidth: float | str = "median", alpha: float = 1.0, metric: Any = None) -> None:
        super().__init__(bandwidth, metric)
        self.alpha = alpha

    def _alpha(self) -> float:
        return check_number("alpha", self.alpha, above=0.0)

    def profile(self, r2: Tensor) -> Tensor:
        alpha = self._alpha()
        # log1p keeps the digits where alpha is large and the base is close to 1.
        return r2.mul_(0.5 / (alpha * self.scale() ** 2)).log1p_().mul_(-alpha).exp_()

    def slope(self, r2: Tensor) -> Tensor:
        alpha = self._alpha()
        base = r2.mul_(0.5 / (alpha * self.scale() ** 2)).log1p_()
        return base.mul_(-alpha - 1.0).exp_().mul_(-0.5 / self.scale() ** 2)
