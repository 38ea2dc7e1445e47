"""The interface of all views: a random copy of each sample of a batch, drawn by a given generator."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from mercer.exceptions import invalid_parameter

Augmentation = Callable[[Tensor, torch.Generator], Tensor]
"""The type of whatever can be used as a view: a View, or a function of a batch and a generator."""


def uniform(like: Tensor, shape: tuple[int, ...], generator: torch.Generator, low: float, high: float) -> Tensor:
    """Return independent uniform numbers from [low, high), of the type and on the device of `like`.

    They are drawn on the generator's device and then moved, so that a CPU generator gives the same views on every
    device.
    """
    drawn = torch.rand(shape, generator=generator, dtype=like.dtype, device=generator.device)
    return drawn.mul_(high - low).add_(low).to(like.device)


def happens(like: Tensor, shape: tuple[int, ...], generator: torch.Generator, probability: float) -> Tensor:
    """Return independent booleans that are True with the given probability; 0 is never and 1 is always."""
    return (torch.rand(shape, generator=generator, device=generator.device) < probability).to(like.device)


class View(BaseEstimator, ABC):
    """A random change of samples after which they still show the same thing, drawn independently for each sample.

    A view is called with a batch and a generator. The result has the shape and type of the batch and shares no memory
    with it. Equal states of the generator give equal results. Like a kernel, a view is a value: it is never changed
    by its use. To define a view, derive a class from this one and implement `apply`.
    """

    def __call__(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        """Return a view of every sample.

        Parameters
        ----------
        batch : tensor of shape (n, ...), of floats
        generator : torch.Generator
            The source of all random numbers.
        """
        name = type(self).__name__
        if not isinstance(batch, Tensor) or not batch.is_floating_point():
            kind = batch.dtype if isinstance(batch, Tensor) else type(batch).__name__
            raise ValueError(f"batch is of type {kind}: {name} takes a tensor of floats, such as torch.float32.")
        if batch.ndim < 2:
            raise ValueError(f"batch has shape {tuple(batch.shape)}: {name} takes samples in rows, (n, ...).")
        if not isinstance(generator, torch.Generator):
            raise invalid_parameter("generator", generator, "a torch.Generator")
        return self.apply(batch, generator)

    @abstractmethod
    def apply(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        """Return a view of every sample of a valid batch, in new memory."""

    def __eq__(self, other: object) -> bool:
        """Whether both views are of the same class and have equal parameters."""
        if type(self) is not type(other):
            return NotImplemented
        return self.get_params(deep=False) == other.get_params(deep=False)

    __hash__ = None  # type: ignore[assignment]


class ImageView(View):
    """A view of images, of shape (n, height, width) or (n, height, width, channels)."""

    def apply(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        if batch.ndim not in (3, 4) or 0 in batch.shape[1:]:
            raise ValueError(
                f"batch has shape {tuple(batch.shape)}: {type(self).__name__} takes images, (n, height, width) or "
                "(n, height, width, channels). Reshaped(view, image_shape) takes them as flat rows."
            )
        if batch.ndim == 3:
            return self.apply_to_images(batch.unsqueeze(1), generator).squeeze(1)
        return self.apply_to_images(batch.movedim(3, 1), generator).movedim(1, 3)

    @abstractmethod
    def apply_to_images(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Return a view of images with the channels first, (n, c, h, w), as torch orders them."""


def check_augmentation(name: str, value: Any) -> Augmentation:
    """Return `value` if it can be called as a view; a class, such as GaussianNoise without (), is an error."""
    if not callable(value) or isinstance(value, type):
        raise invalid_parameter(name, value, "a view such as GaussianNoise(), or a callable of (batch, generator)")
    return value
