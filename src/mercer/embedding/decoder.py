"""Rows from their codes: the decoder of the kernel autoencoder, a ridge regression in closed form."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.spatial.distance import pdist
from torch import Tensor

from mercer.kernels import Gaussian
from mercer.landmarks.features import principal_coefficients

# Bandwidths of the decoder's kernel, as multiples of the median distance between codes.
SPREADS = (2.0, 1.0, 0.5, 0.25, 0.1)
# Weights of its penalty, where features have about variance 1.
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
# Codes that are centers, and codes whose distances are looked at.
MOST_CENTERS, MEDIAN_ROWS = 300, 500


class Decoder(NamedTuple):
    """g(u) = c + C^T u + G^T B^T l(u): a linear map of the code, and what a Gaussian kernel l adds to it.

    Attributes
    ----------
    bandwidth : float
        Of l.
    centers : tensor of shape (q, h)
        Codes that u is compared with.
    basis : tensor of shape (q, s)
        B: in B^T l(u) the centers are white.
    scale : float
        Codes are divided by it before they enter C.
    weights : tensor of shape (h + s, d)
        C above G.
    mean : tensor of shape (d,)
        c.
    rows_mean : tensor of shape (d,)
        The mean of the rows that it was solved for.
    """

    bandwidth: float
    centers: Tensor
    basis: Tensor
    scale: float
    weights: Tensor
    mean: Tensor
    rows_mean: Tensor

    def features(self, codes: Tensor) -> Tensor:
        """Return what the rows are linear in, of shape (n, h + s)."""
        # Distances by torch, for their derivative by the codes; 1e-300 would be 0 in float32.
        distances = codes.square().sum(dim=1)[:, None] + self.centers.square().sum(dim=1) - 2.0 * codes @ self.centers.T
        values = torch.exp(-0.5 * distances.clamp(min=0.0) / self.bandwidth**2)
        return torch.cat([codes / self.scale, values @ self.basis], dim=1)

    def rows(self, codes: Tensor) -> Tensor:
        """Return the rows that codes stand for, of shape (n, d)."""
        return self.mean + self.features(codes) @ self.weights


def decoder_without_weights(codes: Tensor, multiple: float, n_rows: int) -> Decoder:
    """Return a decoder whose bandwidth is a multiple of the spread of codes, to be solved for rows of d columns."""
    some = codes[:: -(-len(codes) // MOST_CENTERS)]
    few = codes[:: -(-len(codes) // MEDIAN_ROWS)].cpu().numpy()
    spread = float(np.median(pdist(few)))
    spread = spread if spread > 0 else 1.0
    kernel = Gaussian(multiple * spread)
    scale = float(codes.var(dim=0).mean().sqrt())
    basis = principal_coefficients(kernel.matrix(some), precision=torch.float32)
    empty = codes.new_zeros((codes.shape[1] + basis.shape[1], n_rows))
    return Decoder(multiple * spread, some, basis, scale if scale > 0 else 1.0, empty, empty[0], empty[0])


def solved(decoder: Decoder, codes: Tensor, X: Tensor, ridges: Sequence[float]) -> list[Decoder]:
    """Return the decoder that has rows back best from their codes, for each weight of its squared norm.

    It minimizes the mean of |x - g(f(x))|^2 plus μ times the squared norm of g: O(n (h + s) (h + s + d) + (h + s)^3).
    """
    F = decoder.features(codes)
    center, mean = F.mean(dim=0), X.mean(dim=0)
    F = F - center
    values, Q = torch.linalg.eigh(F.T @ F / len(F))
    target = Q.T @ (F.T @ (X - mean) / len(F))
    found = []
    for ridge in ridges:
        weights = Q @ (target / (values.clamp(min=0.0) + ridge)[:, None])
        found.append(decoder._replace(weights=weights, mean=mean - center @ weights, rows_mean=mean))
    return found


def unexplained(X: Tensor, found: Tensor, mean: Tensor) -> Tensor:
    """Return the share of the squared distances of rows from a mean that is left between rows and what was found."""
    return (X - found).square().sum() / (X - mean).square().sum().clamp(min=1e-300)
