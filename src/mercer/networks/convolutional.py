"""A small convolutional network with pooling."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.training.randomness import global_chance_from


class CNN(nn.Sequential):
    """A network of 3 x 3 convolutions with ReLU, each followed by average pooling to half the size.

    It maps images (n, c, h, w) to outputs (n, n_outputs). The features of the last layer are averaged over all pixels,
    and the outputs are linear functions of the averages.

    Parameters
    ----------
    n_channels : int, default=3
        The number of channels of the images.
    widths : sequence of int, default=(32, 64, 128)
        The number of channels after each convolution. Images must be at least 2 ** len(widths) pixels high and wide.
    n_outputs : int, default=1
    random_state : int, default=0
        The seed of the initial weights, which depend on nothing else.
    """

    def __init__(
        self, n_channels: int = 3, widths: Sequence[int] = (32, 64, 128), n_outputs: int = 1, *, random_state: int = 0
    ) -> None:
        if not isinstance(widths, (list, tuple)) or not widths:
            raise invalid_parameter("widths", widths, "one or more whole numbers, such as (32, 64, 128)")
        inside = [check_count(f"widths[{i}]", width) for i, width in enumerate(widths)]
        sizes = [check_count("n_channels", n_channels), *inside]
        with global_chance_from(random_state, torch.device("cpu")):
            layers: list[nn.Module] = []
            for n_in, n_out in pairwise(sizes):
                layers += [nn.Conv2d(n_in, n_out, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2)]
            head = nn.Linear(sizes[-1], check_count("n_outputs", n_outputs))
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)
        self.settings: dict[str, Any] = {
            "n_channels": n_channels,
            "widths": tuple(inside),
            "n_outputs": n_outputs,
            "random_state": random_state,
        }
