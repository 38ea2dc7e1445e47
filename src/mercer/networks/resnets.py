"""Residual networks for small images: 18, 34 or 50 layers."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.training.randomness import global_chance_from

CPU = torch.device("cpu")
WIDTHS = (64, 128, 256, 512)
# Number of layers -> number of blocks of each width, and whether they are bottleneck blocks.
DEPTHS = {18: ((2, 2, 2, 2), False), 34: ((3, 4, 6, 3), False), 50: ((3, 4, 6, 3), True)}
# Ratio of a bottleneck block's output channels to its inner width.
EXPANSION = 4


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions, added to the input, or to its 1 x 1 convolution if the shape changes."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.first = convolution(n_in, n_out, 3, stride)
        self.second = convolution(n_out, n_out, 3)
        self.shortcut = nn.Identity() if stride == 1 and n_in == n_out else convolution(n_in, n_out, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.second(functional.relu(self.first(x))) + self.shortcut(x))


class BottleneckBlock(nn.Module):
    """A 1 x 1 convolution to fewer channels, a 3 x 3 convolution, and a 1 x 1 convolution to more channels."""

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

    Images of 32 x 32 pixels are too small for the first layer of the original, a 7 x 7 convolution of stride 2 followed
    by pooling. Here it is a 3 x 3 convolution of stride 1 without pooling. The input is images of shape (n, c, h, w)
    and of any size. The output is the means of the last channels over all pixels, 512 of them, or 2048 with 50 layers;
    or linear functions of these means.

    Parameters
    ----------
    depth : int, default=18
        The number of layers: 18, 34 or 50, for 11.2, 21.3 or 23.5 million weights.
    n_channels : int, default=3
        The number of channels of the images.
    n_outputs : int or None, default=None
        The number of linear functions. None gives the means themselves.
    random_state : int, default=0
        The seed of the initial weights, which depend on nothing else. The weights of convolutions are normal, scaled so
        that gradients keep their size through the layers (He, Zhang, Ren and Sun, 2015).
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
    """Return a convolution with batch normalization; a stride of 1 keeps the size of the image."""
    return nn.Sequential(nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=False), nn.BatchNorm2d(n_out))
