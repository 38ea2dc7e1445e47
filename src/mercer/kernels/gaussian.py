"""The Gaussian kernel."""

from torch import Tensor

from mercer.kernels.radial import RadialKernel


class Gaussian(RadialKernel):
    """The Gaussian kernel k(x, z) = exp(-r^2 / (2 bandwidth^2)), where r is the distance under the metric.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
        The length scale of the distances. "median" becomes the median distance between rows in `fit`.
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        The matrix M in r^2 = (x - z)^T M (x - z); a vector is the diagonal of M. None is the identity.

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
