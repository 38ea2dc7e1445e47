"""A small self-attention network, for rows that are divided into tokens."""

from typing import Any

import torch
from torch import Tensor, nn

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.training.randomness import global_chance_from


class AttentionBlock(nn.Module):
    """Self-attention, then a perceptron of each token; each acts on normalized tokens and is added to its input."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.before_attention, self.before_perceptron = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, n_heads, batch_first=True)
        self.perceptron = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        normal = self.before_attention(x)
        x = x + self.attention(normal, normal, normal, need_weights=False)[0]
        return x + self.perceptron(self.before_perceptron(x))


class AttentionNetwork(nn.Module):
    """A network that divides a row into tokens of equal length, which pass through blocks of self-attention.

    It maps rows (n, d) to outputs (n, n_outputs).

    Parameters
    ----------
    d : int
        The number of columns, a multiple of `n_tokens`.
    n_tokens : int, default=1
        The number of tokens, such as the number of pixel rows of an image.
    width : int, default=64
        The number of features of a token inside the network, a multiple of `n_heads`.
    n_heads : int, default=4
    n_blocks : int, default=2
    n_outputs : int, default=1
    random_state : int, default=0
        The seed of the initial weights, which depend on nothing else.
    """

    def __init__(
        self,
        d: int,
        n_tokens: int = 1,
        width: int = 64,
        n_heads: int = 4,
        n_blocks: int = 2,
        n_outputs: int = 1,
        *,
        random_state: int = 0,
    ) -> None:
        super().__init__()
        if check_count("d", d) % check_count("n_tokens", n_tokens):
            raise invalid_parameter("n_tokens", n_tokens, f"a divisor of d={d}")
        if check_count("width", width) % check_count("n_heads", n_heads):
            raise invalid_parameter("width", width, f"a multiple of n_heads={n_heads}")
        self.n_tokens = n_tokens
        with global_chance_from(random_state, torch.device("cpu")):
            self.inputs = nn.Linear(d // n_tokens, width)
            self.place = nn.Parameter(0.02 * torch.randn(n_tokens, width))
            n_blocks = check_count("n_blocks", n_blocks, at_least=0)
            self.blocks = nn.Sequential(*(AttentionBlock(width, n_heads) for _ in range(n_blocks)))
            self.norm = nn.LayerNorm(width)
            self.outputs = nn.Linear(width, check_count("n_outputs", n_outputs))
        self.settings: dict[str, Any] = {
            "d": d,
            "n_tokens": n_tokens,
            "width": width,
            "n_heads": n_heads,
            "n_blocks": n_blocks,
            "n_outputs": n_outputs,
            "random_state": random_state,
        }

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs of rows, of shape (n, n_outputs)."""
        tokens = self.inputs(x.unflatten(1, (self.n_tokens, -1))) + self.place
        return self.outputs(self.norm(self.blocks(tokens)).mean(dim=1))
