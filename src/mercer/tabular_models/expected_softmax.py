"""The expected softmax of Gaussian latent values, by quasi-Monte Carlo."""

from functools import cache

import numpy as np
import torch
from scipy.special import ndtri
from scipy.stats import qmc
from torch import Tensor

# Number of points for the expected softmax, a power of 2, and the number of points in one step.
N_POINTS, POINTS_AT_A_TIME = 256, 32


def expected_softmax(mean: Tensor, covariance: Tensor, n_points: int = N_POINTS) -> Tensor:
    """Return the expected softmax of Gaussian latent values, of shape (n, c).

    It has no closed form. The mean over Sobol points, the same for every row, has an error below .01. For five classes
    this is a tenth of the error of the formulas by differences of pairs (Lu, Ie and Sha 2020). For two classes the
    softmax depends on one number, the difference of the values, and the points are quantiles at the midpoints of equal
    parts.

    Parameters
    ----------
    mean : tensor of shape (n, c)
    covariance : tensor of shape (n, c, c)
    n_points : int, default=256
        A power of 2.
    """
    total, root = torch.zeros_like(mean), latent_root(covariance)
    for points in normal_points(root.shape[2], n_points).split(POINTS_AT_A_TIME):
        total += len(points) * mean_softmax(mean, deviations(root, points))
    return total / n_points


def latent_root(covariance: Tensor) -> Tensor:
    """Return R of shape (n, c, k): with standard normal z, softmax(mean + R z) has the law of the latent softmax.

    Parameters
    ----------
    covariance : tensor of shape (n, c, c)

    Notes
    -----
    In general k = c. For two classes k = 1, since the softmax does not depend on the sum of the latent values.
    """
    if covariance.shape[1] == 2:
        variance = covariance[:, 0, 0] + covariance[:, 1, 1] - 2.0 * covariance[:, 0, 1]
        half = 0.5 * variance.clamp(min=0.0).sqrt()
        return torch.stack([half, -half], dim=1)[:, :, None]
    values, vectors = torch.linalg.eigh(covariance)
    return vectors * values.clamp(min=0.0).sqrt()[:, None, :]


def deviations(root: Tensor, points: Tensor) -> Tensor:
    """Return R z for every row and point, of shape (c, points, n): the softmax is fastest along the first axis."""
    return torch.einsum("nck,pk->cpn", root, points.to(root))


def mean_softmax(mean: Tensor, deviations: Tensor) -> Tensor:
    """Return the mean over points of softmax(mean + deviations), of shape (n, c)."""
    return torch.softmax(mean.T[:, None, :] + deviations, dim=0).mean(dim=1).T


@cache
def normal_points(dimension: int, n_points: int) -> Tensor:
    """Return points of the Sobol sequence transformed to a normal distribution, of shape (n_points, dimension)."""
    # The first point of the sequence is 0, where the normal quantile is infinite, so all points move by half a step.
    points = qmc.Sobol(dimension, scramble=False).random(n_points) + 0.5 / n_points
    return torch.from_numpy(np.asarray(ndtri(points)))
