"""Random changes of brightness, contrast, saturation and hue of images, and images without colors."""

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.views.base import ImageView, happens, uniform

# Luminance and the two axes of color (rows) as functions of red, green and blue: the YIQ of NTSC (ITU-R BT.601).
YIQ = ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))


def luminance(images: Tensor) -> Tensor:
    """Return images (n, c, h, w) in gray, (n, 1, h, w): the luminance if c = 3, else the mean of the channels."""
    if images.shape[1] != 3:
        return images.mean(dim=1, keepdim=True)
    return (images * images.new_tensor(YIQ[0])[:, None, None]).sum(dim=1, keepdim=True)


def color_matrices(saturations: Tensor, turns: Tensor) -> Tensor:
    """Return the matrices on (red, green, blue) that scale the colors and rotate them about the gray axis.

    T maps (red, green, blue) to the luminance Y and the axes of color I and Q. The matrices are T^-1 diag(1, s R) T,
    where R is a rotation in the plane of I and Q. They do not change gray.

    Parameters
    ----------
    saturations : tensor of shape (n,)
        s: 0 makes the colors gray, 1 does not change them, and above 1 they are stronger.
    turns : tensor of shape (n,)
        The angles of R, as shares of the full circle.

    Returns
    -------
    tensor of shape (n, 3, 3)
    """
    T = torch.tensor(YIQ, dtype=torch.float64)
    gray = T[:1].expand(3, 3)
    quarter = torch.linalg.inv(T) @ torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]).to(T) @ T
    angles = 2.0 * torch.pi * turns
    along, across = saturations * angles.cos(), saturations * angles.sin()
    # R is cos(angle) times the identity plus sin(angle) times a quarter turn, both in the plane of color. `plane` is
    # the projection to that plane, the identity minus the part along gray.
    plane = torch.eye(3, dtype=T.dtype) - gray
    return gray.to(along) + along[:, None, None] * plane.to(along) + across[:, None, None] * quarter.to(along)


def color_images(
    images: Tensor, brightness: Tensor, contrast: Tensor, saturations: Tensor | None = None, turns: Tensor | None = None
) -> Tensor:
    """Return images with changed brightness, contrast (the distance of values from the mean gray), and colors.

    Parameters
    ----------
    images : tensor of shape (n, c, h, w)
    brightness, contrast : tensors of shape (n,)
        Factors. A contrast of 0 gives a uniform gray.
    saturations, turns : tensors of shape (n,), optional
        As in `color_matrices`, for images with three channels.
    """
    mean = luminance(images).mean(dim=(1, 2, 3))
    factors, offsets = brightness * contrast, brightness * (1.0 - contrast) * mean
    factors, offsets = factors[:, None, None], offsets[:, None, None]
    if saturations is None or turns is None:
        return torch.addcmul(offsets[:, None], images, factors[:, None])
    # The offset is gray, which the color matrices do not change: one matrix and one offset make all four changes.
    matrices = factors * color_matrices(saturations, turns)
    return torch.baddbmm(offsets, matrices, images.flatten(2)).reshape(images.shape)


class Color(ImageView):
    """Images whose brightness, contrast, saturation and hue are changed by random amounts, all drawn uniformly.

    Values are not clipped, since their range is not known: a view may have values above white. Brightness multiplies
    the values, so black should be 0; in standardized images it acts as a contrast. Hue rotates the colors at equal
    luminance (in YIQ). In torchvision it rotates them in HSV, where the luminance changes with the hue.

    Parameters
    ----------
    brightness : float, default=0.4
        All values are multiplied by a factor from [1 - brightness, 1 + brightness].
    contrast : float, default=0.4
        Differences from the image's mean gray are multiplied by a factor from [1 - contrast, 1 + contrast].
    saturation : float, default=0.4
        Differences of each pixel from its own gray are multiplied by a factor from [1 - saturation, 1 + saturation].
    hue : float, default=0.1
        Colors are rotated by up to this share of the color circle.
    probability : float, default=0.8
        The probability that an image is changed at all.

    Notes
    -----
    In images with one channel, only brightness and contrast are changed. Images with another number of channels than 1
    or 3 have no known colors: saturation and hue must then be 0.
    """

    def __init__(
        self,
        brightness: float = 0.4,
        contrast: float = 0.4,
        saturation: float = 0.4,
        hue: float = 0.1,
        probability: float = 0.8,
    ) -> None:
        self.brightness = brightness
        self.contrast = contrast
        self.saturation = saturation
        self.hue = hue
        self.probability = probability

    def apply_to_images(self, images: Tensor, generator: torch.Generator) -> Tensor:
        brightness = check_number("brightness", self.brightness, at_least=0.0, at_most=1.0)
        contrast = check_number("contrast", self.contrast, at_least=0.0, at_most=1.0)
        saturation = check_number("saturation", self.saturation, at_least=0.0, at_most=1.0)
        hue = check_number("hue", self.hue, at_least=0.0, at_most=0.5)
        probability = check_number("probability", self.probability, at_least=0.0, at_most=1.0)
        channels = images.shape[1]
        if channels not in (1, 3) and (saturation or hue):
            raise ValueError(
                f"batch has {channels} channels: with saturation={saturation:g} and hue={hue:g} it must have 1 or 3. "
                "Color(saturation=0, hue=0) takes any."
            )
        drawn = uniform(images, (4, len(images)), generator, -1.0, 1.0)
        drawn *= happens(images, (len(images),), generator, probability)
        scaled = 1.0 + brightness * drawn[0], 1.0 + contrast * drawn[1]
        if channels != 3:
            return color_images(images, *scaled)
        return color_images(images, *scaled, 1.0 + saturation * drawn[2], hue * drawn[3])


class Gray(ImageView):
    """Images that lose their colors with some probability: all three channels become the luminance.

    Parameters
    ----------
    probability : float, default=0.2
        The probability that an image becomes gray.
    """

    def __init__(self, probability: float = 0.2) -> None:
        self.probability = probability

    def apply_to_images(self, images: Tensor, generator: torch.Generator) -> Tensor:
        probability = check_number("probability", self.probability, at_least=0.0, at_most=1.0)
        if images.shape[1] != 3:
            raise ValueError(f"batch has {images.shape[1]} channels: Gray takes images with 3, (n, height, width, 3).")
        gray = happens(images, (len(images), 1, 1, 1), generator, probability)
        return torch.where(gray, luminance(images), images)
