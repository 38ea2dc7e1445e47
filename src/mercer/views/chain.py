"""Views that are built from other views: no change, several views in turn, and views of images in flat rows."""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from mercer.checks import check_sample_shape
from mercer.exceptions import invalid_parameter
from mercer.views.base import Augmentation, View, check_augmentation


class Identity(View):
    """The view that leaves samples unchanged."""

    def apply(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        return batch.clone()


class Chain(View):
    """Several views in turn, each applied to the result of the one before it.

    Parameters
    ----------
    views : sequence of views or callables of (batch, generator)
        The first is applied first. An empty sequence leaves samples unchanged.

    Examples
    --------
    >>> from mercer.views import Chain, FeatureDropping, GaussianNoise
    >>> Chain([GaussianNoise(0.2), FeatureDropping()])
    Chain(views=[GaussianNoise(scale=0.2), FeatureDropping()])
    """

    def __init__(self, views: Sequence[Augmentation]) -> None:
        self.views = views

    def apply(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        if not isinstance(self.views, (list, tuple)):
            raise invalid_parameter("views", self.views, "a list of views")
        views = [check_augmentation(f"views[{i}]", view) for i, view in enumerate(self.views)]
        result = batch if views else batch.clone()
        for view in views:
            result = view(result, generator)
        return result


class Reshaped(View):
    """A view of images, applied to images that come as flat rows.

    Parameters
    ----------
    view : View or callable of (batch, generator)
    image_shape : tuple of int
        (height, width) or (height, width, channels), the order of the numbers in a row.

    Examples
    --------
    >>> import torch
    >>> from mercer.views import Flip, Reshaped
    >>> view = Reshaped(Flip(probability=1.0), image_shape=(2, 3))
    >>> view(torch.arange(6.0)[None], torch.Generator()).tolist()
    [[2.0, 1.0, 0.0, 5.0, 4.0, 3.0]]
    """

    def __init__(self, view: Augmentation, image_shape: Sequence[int]) -> None:
        self.view = view
        self.image_shape = image_shape

    def apply(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        view = check_augmentation("view", self.view)
        shape = check_sample_shape("image_shape", self.image_shape, only_images=True)
        if batch.ndim != 2 or batch.shape[1] != prod(shape):
            raise ValueError(
                f"batch has shape {tuple(batch.shape)}: with image_shape={shape} it must be (n, {prod(shape)})."
            )
        return view(batch.reshape(len(batch), *shape), generator).reshape(batch.shape)
