"""Random reflections of images, left to right."""

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.views.base import ImageView, happens


class Flip(ImageView):
    """Images that are mirrored from left to right with some probability. It is not suited to letters and digits.

    Parameters
    ----------
    probability : float, default=0.5
        The probability that an image is mirrored.
    """

    def __init__(self, probability: float = 0.5) -> None:
        self.probability = probability

    def apply_to_images(self, images: Tensor, generator: torch.Generator) -> Tensor:
        probability = check_number("probability", self.probability, at_least=0.0, at_most=1.0)
        mirrored = happens(images, (len(images), 1, 1, 1), generator, probability)
        return torch.where(mirrored, images.flip(3), images)
