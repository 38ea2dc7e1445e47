"""A part of each image, enlarged to the size of the whole."""

import math

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.views.base import ImageView, uniform
from mercer.views.warp import affine_places, warp

ASPECT = 4.0 / 3.0
"""Most that width over height of a crop differs from that of the image, as a factor; that of Inception and SimCLR."""


def crop_images(images: Tensor, areas: Tensor, aspects: Tensor, places: Tensor) -> Tensor:
    """Return the part of each image in a box, resized to the whole by bilinear interpolation.

    Parameters
    ----------
    images : tensor of shape (n, c, h, w)
    areas : tensor of shape (n,)
        The box's share of the area, in (0, 1].
    aspects : tensor of shape (n,)
        From -1 to 1: the logarithm of the box's aspect ratio, relative to the image's, as a share of the largest
        for which a box of this area fits into the image.
    places : tensor of shape (n, 2)
        From -1 to 1 in x and y: from the left and the top to the right and the bottom.
    """
    largest = areas.log().neg().clamp(max=math.log(ASPECT))
    ratios = (aspects * largest).exp()
    sides = torch.stack([areas * ratios, areas / ratios], dim=1).sqrt().clamp(max=1.0)
    return warp(images, affine_places(sides.diag_embed(), (1.0 - sides) * places, *images.shape[2:]), None)


class Crop(ImageView):
    """A random part of each image, resized to the size of the whole.

    The share of the area is uniform in [smallest, 1], the place uniform, and the aspect ratio log-uniform in
    [3/4, 4/3] of the image's own. Where the area is so large that not all of these fit, it is log-uniform among those
    that do; torchvision draws area and ratio anew instead, which makes large crops rarer than asked for.

    Parameters
    ----------
    smallest : float, default=0.5
        Of the area of the image; 1 is the identity.
    """

    def __init__(self, smallest: float = 0.5) -> None:
        self.smallest = smallest

    def apply_to_images(self, images: Tensor, generator: torch.Generator) -> Tensor:
        smallest = check_number("smallest", self.smallest, above=0.0, at_most=1.0)
        areas = uniform(images, (len(images),), generator, smallest, 1.0)
        drawn = uniform(images, (len(images), 3), generator, -1.0, 1.0)
        return crop_images(images, areas, drawn[:, 0], drawn[:, 1:])
