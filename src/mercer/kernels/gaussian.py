"""The Gaussian kernel."""

from torch import Tensor

from mercer.kernels.radial import RadialKernel


class Gaussian(RadialKernel):
    """k(x, z) = exp(-r^2 / (2 bandwidth^2)), r the distance under the metric.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        None is the identity.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> Gaussian(bandwidth=1.0).matrix([[0.0], [2.0]]).round(3).tolist()
    [[1.0, 0.135], [0.135, 1.0]]
    """

    exact_small_distances = False

    def profile(self, r2: Tensor) -> Tensor:
        return r2.mul_(-0.5 / self.scale() ** 2).exp_()

    def slope(self, r2: Tensor) -> Tensor:
        return self.profile(r2).mul_(-0.5 / self.scale() ** 2)

    def slope_beside(self, r2: Tensor, K: Tensor) -> Tensor:
        return K * (-0.5 / self.scale() ** 2)
