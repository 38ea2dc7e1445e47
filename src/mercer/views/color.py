"""Brightness, contrast, saturation and hue of images, and colors taken away."""

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.views.base import ImageView, happens, uniform

# Rows: luminance and the two axes of color, from red, green and blue; that of the NTSC (ITU-R BT.601).
YIQ = ((0.299, 0.587, 0.114), (0.5959, -0.2746, -0.3213), (0.2115, -0.5227, 0.3112))


def luminance(images: Tensor) -> Tensor:
    """Return images of shape (n, c, h, w) in gray, (n, 1, h, w): weighted for three channels, else the mean."""
    if images.shape[1] != 3:
        return images.mean(dim=1, keepdim=True)
    return (images * images.new_tensor(YIQ[0])[:, None, None]).sum(dim=1, keepdim=True)


def color_matrices(saturations: Tensor, turns: Tensor) -> Tensor:
    """Return the matrices on (red, green, blue) that scale the colors and turn them round the gray axis.

    With Y for luminance, I and Q for the axes of color: T^-1 diag(1, s R) T, R the rotation in the plane of I
    and Q. Gray is left as it is.

    Parameters
    ----------
    saturations : tensor of shape (n,)
        s: 0 is gray, 1 leaves the colors, above 1 they are stronger.
    turns : tensor of shape (n,)
        Angles of R, as shares of the circle.

    Returns
    -------
    tensor of shape (n, 3, 3)
    """
    T = torch.tensor(YIQ, dtype=torch.float64)
    gray = T[:1].expand(3, 3)
    quarter = torch.linalg.inv(T) @ torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]).to(T) @ T
    angles = 2.0 * torch.pi * turns
    along, across = saturations * angles.cos(), saturations * angles.sin()
    # R = cos 1 + sin (quarter turn), and the plane of color is what gray leaves.
    plane = torch.eye(3, dtype=T.dtype) - gray
    return gray.to(along) + along[:, None, None] * plane.to(along) + across[:, None, None] * quarter.to(along)


def color_images(
    images: Tensor, brightness: Tensor, contrast: Tensor, saturations: Tensor | None = None, turns: Tensor | None = None
) -> Tensor:
    """Return images with their values scaled, then their distance from the mean gray, then their colors changed.

    Parameters
    ----------
    images : tensor of shape (n, c, h, w)
    brightness, contrast : tensors of shape (n,)
        Factors; contrast 0 is a plain gray.
    saturations, turns : tensors of shape (n,), optional
        As in `color_matrices`, for three channels.
    """
    mean = luminance(images).mean(dim=(1, 2, 3))
    factors, offsets = brightness * contrast, brightness * (1.0 - contrast) * mean
    factors, offsets = factors[:, None, None], offsets[:, None, None]
    if saturations is None or turns is None:
        return torch.addcmul(offsets[:, None], images, factors[:, None])
    # Colors turn about the gray axis, on which the offset lies: one matrix and one offset do all four.
    matrices = factors * color_matrices(saturations, turns)
    return torch.baddbmm(offsets, matrices, images.flatten(2)).reshape(images.shape)


class Color(ImageView):
    """Brightness, contrast, saturation and hue changed, by amounts drawn uniformly.

    Nothing is clipped, as the range of the values is not known: values above white may come. Brightness is a factor of
    the values, so black should be 0; in standardized images it acts as a contrast. Hue turns the colors at equal
    luminance (in YIQ); torchvision turns them in HSV, where the luminance changes with the hue.

    Parameters
    ----------
    brightness : float, default=0.4
        All values times a factor from [1 - brightness, 1 + brightness].
    contrast : float, default=0.4
        Distances from the image's mean gray times a factor from [1 - contrast, 1 + contrast].
    saturation : float, default=0.4
        Distances of each pixel from its own gray times a factor from [1 - saturation, 1 + saturation].
    hue : float, default=0.1
        Colors turned by up to this share of the color circle.
    probability : float, default=0.8
        That an image is changed at all.

    Notes
    -----
    Images with one channel have brightness and contrast only. With channels other than 1 or 3, which have no known
    colors, saturation and hue must be 0.
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
    """Images without their colors, with a probability: all three channels become the luminance.

    Parameters
    ----------
    probability : float, default=0.2
    """

    def __init__(self, probability: float = 0.2) -> None:
        self.probability = probability

    def apply_to_images(self, images: Tensor, generator: torch.Generator) -> Tensor:
        probability = check_number("probability", self.probability, at_least=0.0, at_most=1.0)
        if images.shape[1] != 3:
            raise ValueError(f"batch has {images.shape[1]} channels: Gray takes images with 3, (n, height, width, 3).")
        gray = happens(images, (len(images), 1, 1, 1), generator, probability)
        return torch.where(gray, luminance(images), images)
