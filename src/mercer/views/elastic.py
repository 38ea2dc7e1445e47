"""Elastic deformations of images: every pixel moves a little, and neighboring pixels move almost alike."""

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.views.base import ImageView
from mercer.views.warp import EDGE, affine_places, check_fill, warp

# Directions of the smoothed noise whose amplitude is below this share of the largest are dropped: 1e-6 of the variance.
LEAST_AMPLITUDE = 1e-3


def smooth_factor(size: int, smoothness: float, like: Tensor) -> Tensor:
    """Return a matrix A for which A e is smooth noise of variance 1 along an axis, if e is standard normal.

    Smoothing white noise by a Gaussian of width s is a product with the matrix M_ij = exp(-(i - j)^2 / (2 s^2)). Only
    about size / s singular values of M are not negligible. With M = U S V^T, noise of the same distribution is U S e,
    with one random number e for each of these: for 28 pixels and s = 4 these are 10 numbers instead of 28, and 100
    instead of 784 for an image.

    Parameters
    ----------
    size : int
        The number of pixels.
    smoothness : float
        s.
    like : tensor
        The result gets its type and device.

    Returns
    -------
    tensor of shape (size, k), with rows of length 1
    """
    i = torch.arange(size, dtype=torch.float64)
    U, S, _ = torch.linalg.svd(torch.exp(-0.5 * ((i[:, None] - i) / smoothness) ** 2))
    A = (U * S)[:, S / S[0] > LEAST_AMPLITUDE]
    return (A / A.norm(dim=1, keepdim=True)).to(like)


def elastic_images(images: Tensor, displacements: Tensor, fill: float | None = None) -> Tensor:
    """Return images in which each pixel p has the value of the given image at p + displacement.

    Parameters
    ----------
    images : tensor of shape (n, c, h, w)
    displacements : tensor of shape (n, 2, h, w)
        The displacements of each pixel to the right and down, in pixels.
    fill : float or None
        The value of pixels from outside the image. None repeats the edge.
    """
    height, width = images.shape[2:]
    eye = torch.eye(2, dtype=images.dtype, device=images.device)[None]
    still = affine_places(eye, eye.new_zeros(1, 2), height, width)
    per_pixel = images.new_tensor([2.0 / width, 2.0 / height])[:, None, None]
    return warp(images, torch.addcmul(still, displacements, per_pixel), fill)


class Elastic(ImageView):
    """Images that are deformed by smooth random displacements of their pixels, a view of handwriting (Simard 2003).

    The two displacements of a pixel, to the right and down, are normal noise that is smoothed by a Gaussian and scaled
    to the standard deviation `strength`. In the paper (Simard et al. 2003) the noise is uniform before smoothing, and
    the strength is a factor that is applied after it: the paper's 34 at a smoothness of 4 is a standard deviation of
    1.4 pixels.

    Parameters
    ----------
    strength : float, default=1.0
        The standard deviation of the displacements, in pixels.
    smoothness : float, default=4.0
        The standard deviation of the Gaussian, in pixels. Displacements are similar over about this distance.
    fill : float or "edge", default="edge"
        The value of pixels from outside the image. "edge" repeats the outermost pixels.
    """

    def __init__(self, strength: float = 1.0, smoothness: float = 4.0, fill: float | str = EDGE) -> None:
        self.strength = strength
        self.smoothness = smoothness
        self.fill = fill

    def apply_to_images(self, images: Tensor, generator: torch.Generator) -> Tensor:
        strength = check_number("strength", self.strength, at_least=0.0)
        smoothness = check_number("smoothness", self.smoothness, above=0.0)
        fill = check_fill(self.fill)
        down, right = (smooth_factor(size, smoothness, images) for size in images.shape[2:])
        shape = (len(images), 2, down.shape[1], right.shape[1])
        noise = torch.randn(shape, generator=generator, dtype=images.dtype, device=generator.device)
        displacements = torch.einsum("ik,nakl,jl->naij", down, strength * noise.to(images.device), right)
        return elastic_images(images, displacements, fill)
