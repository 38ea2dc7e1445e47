"""The Laplace kernel on Euclidean distances."""

from torch import Tensor

from mercer.kernels.radial import RadialKernel, root


class Laplace(RadialKernel):
    """The Laplace kernel k(x, z) = exp(-r / bandwidth), where r is the distance under the metric.

    The kernel has a kink at r = 0, where its gradient is set to zero.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
        The length scale of the distances. "median" becomes the median distance between rows in `fit`.
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        The matrix M in r^2 = (x - z)^T M (x - z); a vector is the diagonal of M.
        None is the identity.
    """

    def profile(self, r2: Tensor) -> Tensor:
        return (root(r2) * (-1.0 / self.scale())).exp_()

    def slope(self, r2: Tensor) -> Tensor:
        # -exp(-r / b) / (2 b r). At r = 0 the slope must be 0: r is set to infinity there, and exp(-inf) / inf is 0.
        r = r2.masked_fill_(r2 == 0, float("inf")).sqrt_()
        return (r * (-1.0 / self.scale())).exp_().div_(r.mul_(-2.0 * self.scale()))

    def slope_beside(self, r2: Tensor, K: Tensor) -> Tensor:
        r = r2.masked_fill_(r2 == 0, float("inf")).sqrt_()
        return K / r.mul_(-2.0 * self.scale())
