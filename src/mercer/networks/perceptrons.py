"""Networks for rows of tables: a perceptron, and the residual network of krepes."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.training.randomness import global_chance_from

CPU = torch.device("cpu")


class MLP(nn.Sequential):
    """A perceptron: affine maps with GELU between them.

    Parameters
    ----------
    d : int
        The number of columns.
    widths : sequence of int, default=(512, 512)
        The widths of the hidden layers. It may be empty.
    n_outputs : int, default=1
    random_state : int, default=0
        The seed of the initial weights, which depend on nothing else.
    """

    def __init__(
        self, d: int, widths: Sequence[int] = (512, 512), n_outputs: int = 1, *, random_state: int = 0
    ) -> None:
        if not isinstance(widths, (list, tuple)):
            raise invalid_parameter("widths", widths, "whole numbers, such as (512, 512)")
        inside = [check_count(f"widths[{i}]", width) for i, width in enumerate(widths)]
        sizes = [check_count("d", d), *inside, check_count("n_outputs", n_outputs)]
        with global_chance_from(random_state, CPU):
            layers = [layer for n_in, n_out in pairwise(sizes) for layer in (nn.Linear(n_in, n_out), nn.GELU())]
        super().__init__(*layers[:-1])
        self.settings: dict[str, Any] = {
            "d": d,
            "widths": tuple(inside),
            "n_outputs": n_outputs,
            "random_state": random_state,
        }


class OneTokenAttention(nn.Module):
    """Single-head self-attention of a sequence of one token, which is the row.

    The softmax over one item is 1 for any query and key, so that the result is the value, and query and key get no
    gradient. They are parameters, since the paper counts them, but they are not computed, which saves two thirds of the
    work of this layer. There is no projection of the output: with one, the network of width 1032 would have 6.1 million
    parameters; without it, it has the paper's 5 million.

    Parameters
    ----------
    width : int
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        """Return the values of rows of shape (n, width), which the network adds to the rows."""
        return self.value(x)


class ResMLP(nn.Module):
    """The residual network of krepes, appendix B.2, Algorithm 1, followed by a linear map to the outputs.

    Parameters
    ----------
    d : int
        The number of columns.
    width : int, default=1032
        w, the width of the layers, a multiple of `bottleneck`. With the default there are about 5 million weights.
    n_outputs : int, default=1
    n_blocks : int, default=3
        B, the number of blocks.
    bottleneck : int, default=4
        r: the hidden layer of a block has width w / r.
    random_state : int, default=0
        The seed of the initial weights, which depend on nothing else.
    """

    def __init__(
        self,
        d: int,
        width: int = 1032,
        n_outputs: int = 1,
        n_blocks: int = 3,
        bottleneck: int = 4,
        *,
        random_state: int = 0,
    ) -> None:
        super().__init__()
        w, r = check_count("width", width), check_count("bottleneck", bottleneck)
        if w % r:
            raise invalid_parameter("width", width, f"a multiple of bottleneck={r}")
        with global_chance_from(random_state, CPU):
            self.inputs = nn.Linear(check_count("d", d), w)
            self.norm, self.attention = nn.LayerNorm(w), OneTokenAttention(w)
            self.blocks = nn.ModuleList(
                nn.Sequential(nn.Linear(w, w // r), nn.GELU(), nn.Linear(w // r, w))
                for _ in range(check_count("n_blocks", n_blocks, at_least=0))
            )
            self.outputs = nn.Linear(w, check_count("n_outputs", n_outputs))
        self.settings: dict[str, Any] = {
            "d": d,
            "width": w,
            "n_outputs": n_outputs,
            "n_blocks": n_blocks,
            "bottleneck": r,
            "random_state": random_state,
        }

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of rows, of shape (n, n_outputs)."""
        x = functional.gelu(self.inputs(x))  # lines 1 and 2
        x = x + self.attention(self.norm(x))  # line 3
        for block in self.blocks:  # lines 4 to 9
            x = functional.gelu(x + block(x))
        return self.outputs(x)
