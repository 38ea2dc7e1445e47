"""Random crops of images, enlarged to the size of the whole."""

import math

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.views.base import ImageView, uniform
from mercer.views.warp import affine_places, warp

ASPECT = 4.0 / 3.0
"""The largest factor between the aspect ratios of a crop and of its image, as in Inception and SimCLR."""


def crop_images(images: Tensor, areas: Tensor, aspects: Tensor, places: Tensor) -> Tensor:
    """Return the part of each image that is inside a box, resized to the size of the image by bilinear interpolation.

    Parameters
    ----------
    images : tensor of shape (n, c, h, w)
    areas : tensor of shape (n,)
        The areas of the boxes as shares of the image, in (0, 1].
    aspects : tensor of shape (n,)
        The shapes of the boxes, from -1 to 1: the logarithm of a box's aspect ratio, relative to the image's, as a
        share of the largest for which a box of this area fits into the image.
    places : tensor of shape (n, 2)
        The places of the boxes in x and y, from -1 (left, top) to 1 (right, bottom).
    """
    largest = areas.log().neg().clamp(max=math.log(ASPECT))
    ratios = (aspects * largest).exp()
    sides = torch.stack([areas * ratios, areas / ratios], dim=1).sqrt().clamp(max=1.0)
    return warp(images, affine_places(sides.diag_embed(), (1.0 - sides) * places, *images.shape[2:]), None)


class Crop(ImageView):
    """A random part of each image, resized to the size of the whole image.

    The area of the part, as a share of the image, is uniform in [smallest, 1], and its place is uniform. Its aspect
    ratio, relative to the image's, is log-uniform in [3/4, 4/3]. If the area is so large that not all of these ratios
    fit into the image, the ratio is log-uniform among those that do. torchvision instead draws area and ratio again,
    which makes large crops less frequent than asked for.

    Parameters
    ----------
    smallest : float, default=0.5
        The smallest area, as a share of the image. 1 leaves images unchanged.
    """

    def __init__(self, smallest: float = 0.5) -> None:
        self.smallest = smallest

    def apply_to_images(self, images: Tensor, generator: torch.Generator) -> Tensor:
        smallest = check_number("smallest", self.smallest, above=0.0, at_most=1.0)
        areas = uniform(images, (len(images),), generator, smallest, 1.0)
        drawn = uniform(images, (len(images), 3), generator, -1.0, 1.0)
        return crop_images(images, areas, drawn[:, 0], drawn[:, 1:])
