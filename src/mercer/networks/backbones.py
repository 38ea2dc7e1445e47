"""The backbones that estimators offer: none, a perceptron, the ResNet-18 of small images, or the user's own network."""

import copy
from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from mercer.checks import check_count, check_sample_shape
from mercer.exceptions import InvalidParameterError, invalid_parameter
from mercer.networks.resnets import ResNet
from mercer.training.randomness import global_chance_from

CPU = torch.device("cpu")
BACKBONES = ("mlp", "resnet18")
MLP_WIDTHS = (512, 512)


def mlp(d: int, widths: Sequence[int] = MLP_WIDTHS, *, seed: int = 0) -> nn.Sequential:
    """Return a perceptron for rows of d numbers: for each width, an affine map and a ReLU.

    Parameters
    ----------
    d : int
    widths : sequence of int, default=(512, 512)
        The widths of the hidden layers, and the number of features as the last of them.
    seed : int, default=0
        The seed of the initial weights, which depend on nothing else.
    """
    if not isinstance(widths, (list, tuple)) or not widths:
        raise invalid_parameter("widths", widths, "one or more whole numbers, such as (512, 512)")
    sizes = [check_count("d", d), *(check_count(f"widths[{i}]", width) for i, width in enumerate(widths))]
    with global_chance_from(seed, CPU):
        layers = [layer for i, o in pairwise(sizes) for layer in (nn.Linear(i, o), nn.ReLU())]
    return nn.Sequential(*layers)


class ResNet18(ResNet):
    """The residual network of 18 layers without its classifier, with 11.2 million weights and 512 features.

    Parameters
    ----------
    n_channels : int, default=3
        The number of channels of the images.
    seed : int, default=0
        The seed of the initial weights, which depend on nothing else.
    """

    def __init__(self, n_channels: int = 3, *, seed: int = 0) -> None:
        super().__init__(18, n_channels, random_state=seed)
        self.settings = {"n_channels": n_channels, "seed": seed}


class ChannelsFirst(nn.Module):
    """A layer that reshapes flat rows (n, height * width * channels) to images (n, channels, height, width).

    Parameters
    ----------
    image_shape : tuple of int
        (height, width) for images with one channel, or (height, width, channels): the order of the numbers in a row.
    """

    def __init__(self, image_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.image_shape = image_shape if len(image_shape) == 3 else (*image_shape, 1)

    def forward(self, rows: Tensor) -> Tensor:
        return rows.reshape(len(rows), *self.image_shape).movedim(3, 1).contiguous()

    def extra_repr(self) -> str:
        return f"image_shape={self.image_shape}"


def check_backbone(backbone: Any, sample_shape: Sequence[int], *, seed: int = 0) -> tuple[nn.Module, int]:
    """Return the network that `backbone` stands for, and its number of features.

    The network takes a batch of flat rows, for samples of any shape, and returns features of shape (n, p). Its first
    layer, `ChannelsFirst`, reshapes images to (n, channels, height, width). Everywhere outside the network, the
    channels are last.

    Parameters
    ----------
    backbone : None, "mlp", "resnet18" or torch.nn.Module
        None leaves the samples unchanged, as flat rows. "mlp" is `mlp(d)` of flat rows, and "resnet18" is `ResNet18`,
        which needs images. The input of a module is (n, d), or images with the channels first, and it must return
        finite floats of shape (n, p). The module is copied with its weights and its training and evaluation modes. It
        is never changed itself.
    sample_shape : tuple of int
        The shape of one sample: (d,), (height, width) or (height, width, channels).
    seed : int, default=0
        The seed of the initial weights, which depend on nothing else.

    Returns
    -------
    network : torch.nn.Module
    width : int
        p, found by running a copy in evaluation mode on zeros.

    Examples
    --------
    >>> from mercer.networks.backbones import check_backbone
    >>> network, width = check_backbone("resnet18", (32, 32, 3))
    >>> width
    512
    """
    shape = check_sample_shape("sample_shape", sample_shape)
    if backbone is None:
        return nn.Flatten(), prod(shape)
    is_image = len(shape) > 1
    if isinstance(backbone, nn.Module):
        if any(is_lazy(weight) for weight in [*backbone.parameters(), *backbone.buffers()]):
            raise InvalidParameterError("backbone has weights without a shape yet: run a batch through it first.")
        network = nn.Sequential(ChannelsFirst(shape) if is_image else nn.Flatten(), copy.deepcopy(backbone))
    elif not isinstance(backbone, str) or backbone not in BACKBONES:
        raise invalid_parameter("backbone", backbone, "None, 'mlp', 'resnet18' or a torch.nn.Module")
    elif backbone == "mlp":
        network = nn.Sequential(nn.Flatten(), mlp(prod(shape), seed=seed))
    elif is_image:
        network = nn.Sequential(ChannelsFirst(shape), ResNet18(shape[2] if len(shape) == 3 else 1, seed=seed))
    else:
        raise invalid_parameter("sample_shape", shape, "(height, width[, channels]) with backbone='resnet18'")
    return network, _width(network, prod(shape), seed)


def weights_of(backbone: Any) -> list[Tensor]:
    """Return the weights of a user's module, flat, for a digest; a backbone by name is identified by its seed."""
    return [weight.reshape(-1) for weight in backbone.state_dict().values()] if isinstance(backbone, nn.Module) else []


def _width(network: nn.Sequential, d: int, seed: int) -> int:
    """Return the number of features that a network gives for rows of d numbers, by running it on two rows of zeros."""
    entrance, body = network
    weight = next((weight for weight in body.parameters() if weight.is_floating_point()), torch.zeros(0))
    batch = entrance(weight.new_zeros((2, d)))
    # A copy is run, since a run may change counters and buffers, and with random numbers of its own.
    trial = copy.deepcopy(body).eval()
    with global_chance_from(seed, batch.device), torch.no_grad():
        try:
            features = trial(batch)
        except Exception as error:
            raise InvalidParameterError(f"backbone fails on zeros of shape {tuple(batch.shape)}: {error}") from error
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != 2 or not features.shape[1]:
        given = f"shape {tuple(features.shape)}" if isinstance(features, Tensor) else type(features).__name__
        raise InvalidParameterError(f"backbone gives {given} for 2 samples: it must give a tensor, (n, features).")
    if not features.is_floating_point():
        raise InvalidParameterError(f"backbone gives numbers of type {features.dtype}: it must give floats.")
    if not features.isfinite().all():
        raise InvalidParameterError("backbone gives NaN or infinite numbers for zeros: all must be finite.")
    return features.shape[1]
