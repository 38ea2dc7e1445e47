"""Random rotation, scaling, shearing and shifting of images, by a single interpolation."""

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.views.base import ImageView, uniform
from mercer.views.warp import EDGE, affine_places, check_fill, warp


def affine_images(
    images: Tensor, angles: Tensor, scales: Tensor, shears: Tensor, shifts: Tensor, fill: float | None = None
) -> Tensor:
    """Return images that are sheared, scaled and rotated about their center, then shifted: p -> s R K p + t, in pixels.

    Parameters
    ----------
    images : tensor of shape (n, c, h, w)
    angles : tensor of shape (n,)
        The angles of the rotations R in degrees, counter-clockwise.
    scales : tensor of shape (n,)
        The factors s. A factor above 1 enlarges the image.
    shears : tensor of shape (n,)
        The angles of the shears K in degrees. A pixel moves to the right by tan(angle) times its distance below the
        center.
    shifts : tensor of shape (n, 2)
        The shifts t to the right and down, as shares of the width and the height.
    fill : float or None
        The value of pixels from outside the image. None repeats the edge.
    """
    height, width = images.shape[2:]
    angles, slopes = torch.deg2rad(angles), torch.deg2rad(shears).tan()
    cos, sin = angles.cos(), angles.sin()
    # A pixel of the result is read where it came from, which is given by the inverse map K^-1 R^-1 / s. Since y points
    # down, R^-1 here has the signs that R has in mathematics.
    inverse = torch.stack([cos - slopes * sin, -sin - slopes * cos, sin, cos], dim=1).reshape(-1, 2, 2)
    inverse = inverse / scales[:, None, None]
    # From pixels to coordinates in which width and height are both 2.
    size = images.new_tensor([width, height])
    inverse = inverse * size / size[:, None]
    offsets = -(inverse @ (2.0 * shifts)[:, :, None]).squeeze(2)
    return warp(images, affine_places(inverse, offsets, height, width), fill)


class Affine(ImageView):
    """Images that are rotated, scaled, sheared and shifted by random amounts, all drawn uniformly.

    Parameters
    ----------
    degrees : float, default=10.0
        The angle of the rotation is drawn from [-degrees, degrees].
    scale : float, default=0.1
        The factor of the size is drawn from [1 - scale, 1 + scale]. It is the same for height and width.
    shift : float, default=0.1
        The largest shift, as a share of the height and of the width. The two directions are drawn independently.
    shear : float, default=0.0
        The angle of the shear is drawn from [-shear, shear], in degrees.
    fill : float or "edge", default="edge"
        The value of pixels from outside the image. "edge" repeats the outermost pixels, which suits any value that the
        background has after standardizing.
    """

    def __init__(
        self,
        degrees: float = 10.0,
        scale: float = 0.1,
        shift: float = 0.1,
        shear: float = 0.0,
        fill: float | str = EDGE,
    ) -> None:
        self.degrees = degrees
        self.scale = scale
        self.shift = shift
        self.shear = shear
        self.fill = fill

    def apply_to_images(self, images: Tensor, generator: torch.Generator) -> Tensor:
        degrees = check_number("degrees", self.degrees, at_least=0.0, at_most=180.0)
        scale = check_number("scale", self.scale, at_least=0.0, at_most=0.9)
        shift = check_number("shift", self.shift, at_least=0.0, at_most=1.0)
        shear = check_number("shear", self.shear, at_least=0.0, at_most=60.0)
        fill = check_fill(self.fill)
        drawn = uniform(images, (len(images), 5), generator, -1.0, 1.0)
        return affine_images(
            images, degrees * drawn[:, 0], 1.0 + scale * drawn[:, 1], shear * drawn[:, 2], shift * drawn[:, 3:], fill
        )
