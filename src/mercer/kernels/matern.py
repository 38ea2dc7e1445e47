"""Matérn kernels of smoothness 3/2 and 5/2."""

from torch import Tensor

from mercer.kernels.radial import RadialKernel, root


class Matern32(RadialKernel):
    """The Matérn kernel of smoothness 3/2, k(x, z) = (1 + u) exp(-u), u = sqrt(3) r / bandwidth.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
        The length scale of the distances. "median" becomes the median distance between rows in `fit`.
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        The matrix M of the distance r, r^2 = (x - z)^T M (x - z); a vector is the diagonal of M. None is the identity.
    """

    def profile(self, r2: Tensor) -> Tensor:
        u = root(r2) * (3**0.5 / self.scale())
        return (1.0 + u) * (-u).exp_()

    def slope(self, r2: Tensor) -> Tensor:
        # dk/du = -u exp(-u) and du/d(r^2) = 3 / (2 b^2 u). The factor u cancels in their product.
        return root(r2).mul_(-(3**0.5) / self.scale()).exp_().mul_(-1.5 / self.scale() ** 2)


class Matern52(RadialKernel):
    """The Matérn kernel of smoothness 5/2, k(x, z) = (1 + u + u^2 / 3) exp(-u), u = sqrt(5) r / bandwidth.

    Parameters
    ----------
    bandwidth : float or "median", default="median"
        The length scale of the distances. "median" becomes the median distance between rows in `fit`.
    metric : None, Mahalanobis, vector of weights or (d, d) matrix, default=None
        The matrix M of the distance r, r^2 = (x - z)^T M (x - z); a vector is the diagonal of M. None is the identity.
    """

    def profile(self, r2: Tensor) -> Tensor:
        # For a very large u, u^2 would be infinite while exp(-u) is 0, and their product would be NaN.
        u = (root(r2) * (5**0.5 / self.scale())).clamp(max=1e4)
        return (1.0 + u + u.square() / 3.0) * (-u).exp_()

    def slope(self, r2: Tensor) -> Tensor:
        # dk/du = -u (1 + u) exp(-u) / 3 and du/d(r^2) = 5 / (2 b^2 u). The factor u cancels in their product.
        u = root(r2).mul_(5**0.5 / self.scale())
        return (-u).exp_().mul_(u.add_(1.0)).mul_(-5.0 / (6.0 * self.scale() ** 2))
