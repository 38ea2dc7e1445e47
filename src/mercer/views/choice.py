"""The view that an estimator uses for each value of its parameter `augment`."""

from collections.abc import Callable, Sequence
from typing import Any

from mercer.checks import check_sample_shape
from mercer.exceptions import invalid_parameter
from mercer.views.affine import Affine
from mercer.views.base import Augmentation, View, check_augmentation
from mercer.views.blur import Blur
from mercer.views.chain import Chain, Identity
from mercer.views.color import Color
from mercer.views.crop import Crop
from mercer.views.elastic import Elastic
from mercer.views.flip import Flip
from mercer.views.table import FeatureDropping, FeatureSwapping, GaussianNoise

# Color images are also blurred if their shorter side has this many pixels or more: SimCLR blurs ImageNet, not CIFAR-10.
BLURRED_FROM = 64


def view_of_tables(shape: tuple[int, ...]) -> View:
    """Return the view of tables: noise and dropped features (krepes, appendix B.1)."""
    return Chain([GaussianNoise(0.3), FeatureDropping()])


def view_of_images(shape: tuple[int, ...]) -> View:
    """Return small deformations for gray images, which may be letters or digits; crops and color changes for others."""
    if len(shape) == 1:
        raise ValueError(
            f"augment='images' is for images, and a sample has shape {shape}: it must be (height, width) or "
            "(height, width, channels). Reshaped(view, image_shape) takes images as flat rows."
        )
    if len(shape) == 2 or shape[2] == 1:
        return Chain([Affine(degrees=5.0, scale=0.05, shift=0.05), Elastic(strength=0.7), GaussianNoise(0.3)])
    color = Color() if shape[2] == 3 else Color(saturation=0.0, hue=0.0)
    blurred: list[View] = [Blur()] if min(shape[:2]) >= BLURRED_FROM else []
    return Chain([Crop(), Flip(), color, *blurred])


def view_by_shape(shape: tuple[int, ...]) -> View:
    """Return the view of tables for samples of shape (d,), and the view of images for other shapes."""
    return view_of_tables(shape) if len(shape) == 1 else view_of_images(shape)


SHORTHANDS: dict[str, Callable[[tuple[int, ...]], View]] = {
    "auto": view_by_shape,
    "tables": view_of_tables,
    "images": view_of_images,
    "noise": lambda shape: GaussianNoise(),
    "swapping": lambda shape: FeatureSwapping(),
    "digits": lambda shape: Chain([Affine(), Elastic()]),
}


def check_view(augment: Any, shape: Sequence[int]) -> Augmentation:
    """Return the view that `augment` stands for, for samples of the given shape.

    Parameters
    ----------
    augment : None, str, View or callable of (batch, generator)
        None is `Identity()`, which leaves the samples unchanged. A view or a callable is returned as it is. The
        strings are:

        - "auto" depends on the shape of a sample: "tables" for (d,), "images" for other shapes;
        - "tables" is `Chain([GaussianNoise(0.3), FeatureDropping()])`, for standardized columns;
        - "images", for gray images of shape (h, w) or (h, w, 1) that are standardized as a whole, is
          `Chain([Affine(degrees=5.0, scale=0.05, shift=0.05), Elastic(strength=0.7), GaussianNoise(0.3)])`. It moves
          and bends images a little and does not flip them, since letters and digits must not be flipped. For images
          of shape (h, w, 3) it is `Chain([Crop(), Flip(), Color()])`, followed by `Blur()` if both sides have 64
          pixels or more. Other numbers of channels get the same without changes of saturation and hue;
        - "noise" is `GaussianNoise()` and "swapping" is `FeatureSwapping()`, for any shape;
        - "digits" is `Chain([Affine(), Elastic()])`, for handwriting.
    shape : tuple of int
        The shape of one sample: (d,), (height, width) or (height, width, channels).

    Examples
    --------
    >>> from mercer.views import check_view
    >>> check_view("auto", (20,))
    Chain(views=[GaussianNoise(scale=0.3), FeatureDropping()])
    >>> check_view("auto", (28, 28))
    Chain(views=[Affine(degrees=5.0, scale=0.05, shift=0.05),
                 Elastic(strength=0.7), GaussianNoise(scale=0.3)])
    """
    sizes = check_sample_shape("shape", shape)
    if augment is None:
        return Identity()
    if isinstance(augment, str) and augment in SHORTHANDS:
        return SHORTHANDS[augment](sizes)
    if isinstance(augment, str):
        raise invalid_parameter("augment", augment, [*SHORTHANDS], "None, a view or a callable is also allowed.")
    return check_augmentation("augment", augment)
