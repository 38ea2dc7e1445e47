"""Random shifts of images by whole pixels."""

import torch
from torch import Tensor

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.views.base import ImageView
from mercer.views.warp import EDGE, check_fill


def shift_images(images: Tensor, right: Tensor, down: Tensor, fill: float | None = None) -> Tensor:
    """Return images that are shifted by whole pixels, without interpolation.

    Parameters
    ----------
    images : tensor of shape (n, c, h, w)
    right, down : integer tensors of shape (n,)
        The shift of each image in pixels.
    fill : float or None
        The value of pixels from outside the image. None repeats the edge.
    """
    height, width = images.shape[2:]
    y = torch.arange(height, device=images.device) - down[:, None]
    x = torch.arange(width, device=images.device) - right[:, None]
    sources = y.clamp(0, height - 1)[:, :, None] * width + x.clamp(0, width - 1)[:, None, :]
    moved = images.flatten(2).gather(2, sources.flatten(1)[:, None].expand(-1, images.shape[1], -1))
    moved = moved.reshape(images.shape)
    if fill is None:
        return moved
    inside = ((y >= 0) & (y < height))[:, :, None] & ((x >= 0) & (x < width))[:, None, :]
    return moved.masked_fill_(~inside[:, None], fill)


class Shift(ImageView):
    """Images that are shifted horizontally and vertically by random whole numbers of pixels in [-pixels, pixels].

    Parameters
    ----------
    pixels : int, default=2
        The largest shift. It must be less than the height and the width.
    fill : float or "edge", default="edge"
        The value of pixels from outside the image. "edge" repeats the outermost pixels.
    """

    def __init__(self, pixels: int = 2, fill: float | str = EDGE) -> None:
        self.pixels = pixels
        self.fill = fill

    def apply_to_images(self, images: Tensor, generator: torch.Generator) -> Tensor:
        pixels = check_count("pixels", self.pixels, at_least=0)
        if pixels >= min(images.shape[2:]):
            height, width = images.shape[2:]
            raise invalid_parameter(
                "pixels", pixels, f"less than the height and the width of the images, here {height} and {width}"
            )
        drawn = torch.randint(-pixels, pixels + 1, (2, len(images)), generator=generator, device=generator.device).to(
            images.device
        )
        return shift_images(images, drawn[0], drawn[1], check_fill(self.fill))
