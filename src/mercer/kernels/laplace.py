"""The Laplace kernel on Euclidean distances."""

from torch import Tensor

from mercer.kernels.radial import RadialKernel, root


class Laplace(RadialKernel):
    """k(x, z) = exp(-r / bandwidth), r the distance under the metric.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        None is the identity.

    Notes
    -----
    The kernel has a kink at r = 0, where its gradient is taken as zero.
    """

    def profile(self, r2: Tensor) -> Tensor:
        return (root(r2) * (-1.0 / self.scale())).exp_()

    def slope(self, r2: Tensor) -> Tensor:
        # -exp(-r / b) / (2 b r). An infinite r stands in for r = 0: exp(-inf) / inf is the zero that is wanted.
        r = r2.masked_fill_(r2 == 0, float("inf")).sqrt_()
        return (r * (-1.0 / self.scale())).exp_().div_(r.mul_(-2.0 * self.scale()))

    def slope_beside(self, r2: Tensor, K: Tensor) -> Tensor:
        r = r2.masked_fill_(r2 == 0, float("inf")).sqrt_()
        return K / r.mul_(-2.0 * self.scale())
