"""Matérn kernels of smoothness 3/2 and 5/2."""

from torch import Tensor

from mercer.kernels.radial import RadialKernel, root


class Matern32(RadialKernel):
    """k(x, z) = (1 + u) exp(-u), u = sqrt(3) r / bandwidth, r the distance under the metric.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        None is the identity.
    """

    def profile(self, r2: Tensor) -> Tensor:
        u = root(r2) * (3**0.5 / self.scale())
        return (1.0 + u) * (-u).exp_()

    def slope(self, r2: Tensor) -> Tensor:
        # dk/du = -u exp(-u), and du/d(r^2) = 3 / (2 b^2 u): the u cancels.
        return root(r2).mul_(-(3**0.5) / self.scale()).exp_().mul_(-1.5 / self.scale() ** 2)


class Matern52(RadialKernel):
    """k(x, z) = (1 + u + u^2 / 3) exp(-u), u = sqrt(5) r / bandwidth, r the distance under the metric.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        None is the identity.
    """

    def profile(self, r2: Tensor) -> Tensor:
        # Where exp(-u) is 0, the square of u must not be infinite: their product would be NaN.
        u = (root(r2) * (5**0.5 / self.scale())).clamp(max=1e4)
        return (1.0 + u + u.square() / 3.0) * (-u).exp_()

    def slope(self, r2: Tensor) -> Tensor:
        # dk/du = -u (1 + u) exp(-u) / 3, and du/d(r^2) = 5 / (2 b^2 u): the u cancels.
        u = root(r2).mul_(5**0.5 / self.scale())
        return (-u).exp_().mul_(u.add_(1.0)).mul_(-5.0 / (6.0 * self.scale() ** 2))
