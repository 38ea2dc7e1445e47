"""The decoder of the kernel autoencoder, which reconstructs rows from their codes by ridge regression."""

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
# Weights of the decoder's penalty, for features with a variance of about 1.
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
# At most this many codes are centers of the kernel, and this many are used for the median distance.
MOST_CENTERS, MEDIAN_ROWS = 300, 500


class Decoder(NamedTuple):
    """g(u) = c + C^T u + G^T B^T l(u): the sum of a linear map of the code u and of a function of a Gaussian kernel.

    Attributes
    ----------
    bandwidth : float
        The bandwidth of the kernel.
    centers : tensor of shape (q, h)
        The codes with which u is compared: l(u) holds the kernel values between u and these.
    basis : tensor of shape (q, s)
        B, which whitens the kernel matrix of the centers.
    scale : float
        The number by which codes are divided before they are multiplied with C.
    weights : tensor of shape (h + s, d)
        C, and below it G.
    mean : tensor of shape (d,)
        c.
    rows_mean : tensor of shape (d,)
        The mean of the rows from which the decoder was computed.
    """

    bandwidth: float
    centers: Tensor
    basis: Tensor
    scale: float
    weights: Tensor
    mean: Tensor
    rows_mean: Tensor

    def features(self, codes: Tensor) -> Tensor:
        """Return the features of codes in which the reconstructed rows are linear, of shape (n, h + s)."""
        # The squared distances are written out in torch operations, so that they can be differentiated by the codes.
        distances = codes.square().sum(dim=1)[:, None] + self.centers.square().sum(dim=1) - 2.0 * codes @ self.centers.T
        values = torch.exp(-0.5 * distances.clamp(min=0.0) / self.bandwidth**2)
        return torch.cat([codes / self.scale, values @ self.basis], dim=1)

    def rows(self, codes: Tensor) -> Tensor:
        """Return the rows that are reconstructed from codes, of shape (n, d)."""
        return self.mean + self.features(codes) @ self.weights


def decoder_without_weights(codes: Tensor, multiple: float, n_columns: int) -> Decoder:
    """Return a decoder with weights of zero, whose bandwidth is `multiple` times the median distance of the codes.

    Its weights are then computed by `solved`, for rows with `n_columns` columns.
    """
    some = codes[:: -(-len(codes) // MOST_CENTERS)]
    few = codes[:: -(-len(codes) // MEDIAN_ROWS)].cpu().numpy()
    spread = float(np.median(pdist(few)))
    spread = spread if spread > 0 else 1.0
    kernel = Gaussian(multiple * spread)
    scale = float(codes.var(dim=0).mean().sqrt())
    basis = principal_coefficients(kernel.matrix(some), precision=torch.float32)
    empty = codes.new_zeros((codes.shape[1] + basis.shape[1], n_columns))
    return Decoder(multiple * spread, some, basis, scale if scale > 0 else 1.0, empty, empty[0], empty[0])


def solved(decoder: Decoder, codes: Tensor, X: Tensor, ridges: Sequence[float]) -> list[Decoder]:
    """Return, for each ridge μ, the decoder that minimizes the mean of |x - g(u)|^2 plus μ times its squared weights.

    O(n (h + s) (h + s + d) + (h + s)^3) time.

    Parameters
    ----------
    decoder : Decoder
        The decoder whose weights and means are replaced.
    codes : tensor of shape (n, h)
        The code u of each row.
    X : tensor of shape (n, d)
        The rows x.
    ridges : sequence of float
        The values of μ.
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
    """Return sum |x - x'|^2 / sum |x - mean|^2, where `found` holds the reconstruction x' of each row x of X."""
    return (X - found).square().sum() / (X - mean).square().sum().clamp(min=1e-300)
