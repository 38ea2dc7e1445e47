"""Residual networks for small images: 18, 34 or 50 layers."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.training.randomness import global_chance_from

CPU = torch.device("cpu")
WIDTHS = (64, 128, 256, 512)
# Layers -> blocks of each width; whether blocks are narrow inside.
DEPTHS = {18: ((2, 2, 2, 2), False), 34: ((3, 4, 6, 3), False), 50: ((3, 4, 6, 3), True)}
# Blocks that are narrow inside give so many times their width.
EXPANSION = 4


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions, added to what came in, or to its projection by a 1 x 1 one where the shape changes."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.first = convolution(n_in, n_out, 3, stride)
        self.second = convolution(n_out, n_out, 3)
        self.shortcut = nn.Identity() if stride == 1 and n_in == n_out else convolution(n_in, n_out, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.second(functional.relu(self.first(x))) + self.shortcut(x))


class BottleneckBlock(nn.Module):
    """A 3 x 3 convolution between two of 1 x 1, which make its input narrow and its output wide again."""

    def __init__(self, n_in: int, width: int, stride: int) -> None:
        super().__init__()
        n_out = EXPANSION * width
        self.first = convolution(n_in, width, 1)
        self.second = convolution(width, width, 3, stride)
        self.third = convolution(width, n_out, 1)
        self.shortcut = nn.Identity() if stride == 1 and n_in == n_out else convolution(n_in, n_out, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        inside = functional.relu(self.second(functional.relu(self.first(x))))
        return functional.relu(self.third(inside) + self.shortcut(x))


class ResNet(nn.Sequential):
    """The residual network of 18, 34 or 50 layers (He, Zhang, Ren and Sun, 2016) as it is used on CIFAR.

    Images of 32 x 32 pixels are too small for the first layer of the original, 7 x 7 in steps of two and a
    pooling: here it is 3 x 3 in steps of one, with no pooling. It takes images of shape (n, c, h, w) of any size, and
    gives the means of its last maps, 512 of them, or 2048 with 50 layers; or linear functions of these.

    Parameters
    ----------
    depth : int, default=18
        18, 34 or 50; it then has 11.2, 21.3 or 23.5 million weights.
    n_channels : int, default=3
        Of the images.
    n_outputs : int or None, default=None
        None gives the means of the last maps.
    random_state : int, default=0
        Where the weights come from, and nothing else: those of convolutions are normal, as large as keeps the
        gradients of one size through the layers (He, Zhang, Ren and Sun, 2015).
    """

    def __init__(
        self, depth: int = 18, n_channels: int = 3, n_outputs: int | None = None, *, random_state: int = 0
    ) -> None:
        if depth not in DEPTHS:
            raise invalid_parameter("depth", depth, [str(known) for known in DEPTHS])
        self.settings = {
            "depth": depth,
            "n_channels": check_count("n_channels", n_channels),
            "n_outputs": None if n_outputs is None else check_count("n_outputs", n_outputs),
            "random_state": random_state,
        }
        counts, is_narrow = DEPTHS[depth]
        block: type[nn.Module] = BottleneckBlock if is_narrow else ResidualBlock
        factor, width = EXPANSION if is_narrow else 1, WIDTHS[0]
        with global_chance_from(random_state, CPU):
            layers: list[nn.Module] = [convolution(n_channels, width, 3), nn.ReLU()]
            for stage, (n_blocks, n_out) in enumerate(zip(counts, WIDTHS, strict=True)):
                for number in range(n_blocks):
                    layers.append(block(width, n_out, 2 if stage > 0 and number == 0 else 1))
                    width = factor * n_out
            layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
            if n_outputs is not None:
                layers.append(nn.Linear(width, n_outputs))
            settings = self.settings
            super().__init__(*layers)
            self.settings = settings
            for module in self.modules():
                if isinstance(module, nn.Conv2d):
                    nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def convolution(n_in: int, n_out: int, size: int, stride: int = 1) -> nn.Sequential:
    """Return a convolution that keeps the size of the image but for its stride, and normalizes over the batch."""
    return nn.Sequential(nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=False), nn.BatchNorm2d(n_out))
