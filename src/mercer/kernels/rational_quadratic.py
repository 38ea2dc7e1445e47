"""The rational quadratic kernel."""

from typing import Any

from torch import Tensor

from mercer.checks import check_number
from mercer.kernels.radial import RadialKernel


class RationalQuadratic(RadialKernel):
    """The rational quadratic kernel k(x, z) = (1 + r^2 / (2 alpha bandwidth^2))^-alpha, r the distance.

    It is a mixture of Gaussian kernels of all bandwidths. A small alpha gives heavy tails, and the kernel tends to the
    Gaussian kernel as alpha grows.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
        The length scale of the distances. "median" becomes the median distance between rows in `fit`.
    alpha : float, default=1.0
        A number above 0.
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        The matrix M in r^2 = (x - z)^T M (x - z); a vector is the diagonal of M. None is the identity.
    """

    exact_small_distances = False

    def __init__(self, bandwidth: float | str = "median", alpha: float = 1.0, metric: Any = None) -> None:
        super().__init__(bandwidth, metric)
        self.alpha = alpha

    def _alpha(self) -> float:
        return check_number("alpha", self.alpha, above=0.0)

    def profile(self, r2: Tensor) -> Tensor:
        alpha = self._alpha()
        # log1p keeps precision if alpha is large, since the base is then close to 1.
        return r2.mul_(0.5 / (alpha * self.scale() ** 2)).log1p_().mul_(-alpha).exp_()

    def slope(self, r2: Tensor) -> Tensor:
        alpha = self._alpha()
        base = r2.mul_(0.5 / (alpha * self.scale() ** 2)).log1p_()
        return base.mul_(-alpha - 1.0).exp_().mul_(-0.5 / self.scale() ** 2)
