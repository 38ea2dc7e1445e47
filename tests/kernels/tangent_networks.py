"""Small networks with every kind of layer, for the tests of tangent kernels; each takes rows of 12 numbers."""

import torch
from torch import nn
from torch.nn import functional

from mercer.training.randomness import global_chance_from

COLUMNS = 12


class Residual(nn.Module):
    """x + body(x)."""

    def __init__(self, *body):
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x):
        return x + self.body(x)


class SelfAttention(nn.Module):
    """Attention of a sequence with itself, of shape (n, length, width), or (length, n, width)."""

    def __init__(self, width, heads, *, batch_first=True, **options):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=batch_first, **options)
        self.batch_first = batch_first

    def forward(self, x):
        x = x if self.batch_first else x.transpose(0, 1)
        out = self.attention(x, x, x)[0]
        return out if self.batch_first else out.transpose(0, 1)


class Tokens(nn.Module):
    """Rows of numbers as tokens below 5, embedded and with their place added."""

    def __init__(self, width=6, padding_idx=None):
        super().__init__()
        self.table = nn.Embedding(5, width, padding_idx=padding_idx)
        self.place = nn.Parameter(torch.randn(1, COLUMNS, width))

    def forward(self, x):
        return self.table((x.abs() * 3).long() % 5) + self.place


class Shared(nn.Module):
    """One dense layer and one convolution, each used twice, and one table for words in and words out."""

    def __init__(self):
        super().__init__()
        self.dense, self.conv = nn.Linear(COLUMNS, COLUMNS), nn.Conv2d(2, 2, 3, padding=1)
        self.table = nn.Embedding(5, 4)
        self.out = nn.Linear(5, 1)

    def forward(self, x):
        x = torch.tanh(self.dense(torch.tanh(self.dense(x))))
        x = self.conv(torch.tanh(self.conv(x.reshape(-1, 2, 2, 3)))).flatten(1)
        words = self.table((x.abs() * 3).long() % 5) * x[..., None]
        return self.out(functional.linear(words.sum(dim=1), self.table.weight))


class Windows(nn.Module):
    """Samples and windows in one axis, as in shifted windows."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(4, 3)

    def forward(self, x):
        return torch.tanh(self.dense(x.reshape(-1, 4))).reshape(len(x), -1)


class Scales(nn.Module):
    """A parameter that multiplies and one that is added, of images."""

    def __init__(self):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.randn(3, 1, 1)), nn.Parameter(torch.randn(3, 1, 1))
        self.number = nn.Parameter(torch.tensor(0.7))

    def forward(self, x):
        return torch.tanh(x.reshape(-1, 3, 2, 2) * self.scale + self.shift).flatten(1) * self.number


class Odd(nn.Module):
    """A parameter that is used in a way of its own."""

    def __init__(self):
        super().__init__()
        self.power = nn.Parameter(torch.tensor([1.5, 0.5, 2.0]))

    def forward(self, x):
        return (x.reshape(-1, 4, 3).abs() + 0.5) ** self.power


def image(*layers, shape=(2, 2, 3)):
    return nn.Sequential(nn.Unflatten(1, shape), *layers, nn.Flatten())


def head(width):
    return nn.Linear(width, 1)


BUILDS = {
    "linear": lambda: nn.Sequential(nn.Linear(COLUMNS, 7), nn.Tanh(), nn.Linear(7, 1)),
    "linear_no_bias": lambda: nn.Sequential(nn.Linear(COLUMNS, 7, bias=False), nn.Tanh(), nn.Linear(7, 1, bias=False)),
    "tokens": lambda: nn.Sequential(Tokens(), nn.Linear(6, 3), nn.Tanh(), nn.Flatten(), head(36)),
    "few_tokens": lambda: nn.Sequential(nn.Unflatten(1, (2, 6)), nn.Linear(6, 9), nn.Tanh(), nn.Flatten(), head(18)),
    "embedding": lambda: nn.Sequential(Tokens(padding_idx=2), nn.Flatten(), nn.Tanh(), head(72)),
    "conv1d": lambda: image(
        nn.Conv1d(2, 4, 3, padding=1), nn.Tanh(), nn.Conv1d(4, 2, 2, stride=2), shape=(2, 6)
    ).append(head(6)),
    "conv1d_dilated": lambda: image(
        nn.Conv1d(2, 4, 2, dilation=2, groups=2, padding="same"), nn.Tanh(), shape=(2, 6)
    ).append(head(24)),
    "conv2d": lambda: image(nn.Conv2d(2, 5, 3, padding=1), nn.Tanh(), nn.Conv2d(5, 3, (1, 2), padding=(1, 0))).append(
        head(24)
    ),
    "conv2d_pixels": lambda: image(
        nn.Conv2d(3, 20, 2, padding=1),
        nn.Tanh(),
        nn.Conv2d(20, 20, (2, 3), dilation=(2, 1), padding=(1, 0)),
        shape=(3, 2, 2),
    ).append(head(60)),
    "conv2d_patches": lambda: image(
        nn.Conv2d(3, 16, 2, stride=2), nn.Tanh(), nn.Conv2d(16, 40, 1), shape=(3, 2, 2)
    ).append(head(40)),
    "conv2d_strided": lambda: image(nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.Tanh(), shape=(1, 3, 4)).append(
        head(16)
    ),
    "conv2d_same": lambda: image(nn.Conv2d(1, 4, (2, 3), padding="same"), nn.Tanh(), shape=(1, 3, 4)).append(head(48)),
    "conv2d_circular": lambda: image(
        nn.Conv2d(1, 4, 3, padding=1, padding_mode="circular"), nn.Tanh(), shape=(1, 3, 4)
    ).append(head(48)),
    "depthwise": lambda: image(
        nn.Conv2d(4, 8, 3, padding=1, groups=4), nn.Tanh(), nn.Conv2d(8, 8, 1, groups=2), shape=(4, 1, 3)
    ).append(head(24)),
    "batch_norm": lambda: (
        image(nn.Conv2d(2, 4, 1), nn.BatchNorm2d(4), nn.ReLU(inplace=True)).append(nn.BatchNorm1d(24)).append(head(24))
    ),
    "layer_norm": lambda: nn.Sequential(
        nn.Linear(COLUMNS, 8),
        nn.LayerNorm(8),
        nn.Tanh(),
        nn.Unflatten(1, (2, 4)),
        nn.LayerNorm((2, 4)),
        nn.Flatten(),
        head(8),
    ),
    "group_norm": lambda: image(nn.Conv2d(2, 6, 1), nn.GroupNorm(3, 6), nn.Tanh()).append(head(36)),
    "attention": lambda: nn.Sequential(
        nn.Unflatten(1, (3, 4)), Residual(nn.LayerNorm(4), SelfAttention(4, 2)), nn.Flatten(), nn.Tanh(), head(12)
    ),
    "attention_sequence_first": lambda: nn.Sequential(
        nn.Unflatten(1, (3, 4)), SelfAttention(4, 1, batch_first=False), nn.Flatten(), nn.Tanh(), head(12)
    ),
    "attention_separate": lambda: nn.Sequential(
        nn.Unflatten(1, (3, 4)), SelfAttention(4, 2, kdim=4, vdim=4, bias=True), nn.Flatten(), nn.Tanh(), head(12)
    ),
    "transformer": lambda: nn.Sequential(
        nn.Unflatten(1, (3, 4)), nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), nn.Flatten(), head(12)
    ),
    "transformer_sequence_first": lambda: nn.Sequential(
        nn.Unflatten(1, (3, 4)), Turned(nn.TransformerEncoderLayer(4, 2, 6)), nn.Flatten(), head(12)
    ),
    "residual": lambda: nn.Sequential(
        nn.Linear(COLUMNS, 6), Residual(nn.Linear(6, 3), nn.GELU(), nn.Linear(3, 6)), nn.GELU(), head(6)
    ),
    "shared": Shared,
    "windows": lambda: nn.Sequential(Windows(), head(9)),
    "scales": lambda: nn.Sequential(Scales(), head(12)),
    "flat_output": lambda: nn.Sequential(nn.Linear(COLUMNS, 1), nn.Flatten(0)),
}
UNKNOWN = {
    "odd": lambda: nn.Sequential(Odd(), nn.Flatten(), nn.Linear(12, 4), nn.Tanh(), head(4)),
    "prelu": lambda: nn.Sequential(nn.Linear(COLUMNS, 6), nn.PReLU(6), head(6)),
    "recurrent": lambda: nn.Sequential(nn.Unflatten(1, (4, 3)), Last(nn.GRU(3, 5, batch_first=True)), head(5)),
}


class Turned(nn.Module):
    """A module of sequences (length, n, width), on (n, length, width)."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x.transpose(0, 1)).transpose(0, 1)


class Last(nn.Module):
    """The last state of a recurrent module."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)[0][:, -1]


def built(build, seed=0):
    """Return a network with weights from the seed, with statistics of batches that are not those of the start."""
    with global_chance_from(seed, torch.device("cpu")):
        network = build()
        for module in network.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2.0)
                module.weight.data.normal_()
            if isinstance(module, (nn.LayerNorm, nn.GroupNorm)):
                module.weight.data.normal_()
    return network.eval()
