"""The networks of Table 1 (appendix B.2), and what a step of theirs costs beside one of a kernel embedding."""

from collections.abc import Sequence
from itertools import count, pairwise

import torch
from torch import Tensor, nn

from mercer import networks
from mercer.checks import check_count
from mercer.exceptions import invalid_parameter


class MLP(nn.Module):
    """Linear layers with GELU between them, such as 784-1000-1000-150.

    The paper does not say which network, if any, it has for MNIST. GELU is what its other network has, so that the two
    differ by their layers alone.

    Parameters
    ----------
    widths : sequence of int
        Those of the inputs, of the hidden layers and of the embeddings.
    """

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        widths = [check_count(f"widths[{i}]", width) for i, width in enumerate(widths)]
        if len(widths) < 2:
            raise invalid_parameter("widths", widths, "two numbers or more, those of inputs and embeddings among them")
        layers: list[nn.Module] = []
        for n_in, n_out in pairwise(widths):
            layers += [nn.Linear(n_in, n_out), nn.GELU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, x: Tensor) -> Tensor:
        """Return the embeddings of rows, of shape (n, h)."""
        return self.layers(x)


def mlp(d: int, n_components: int, hidden: Sequence[int]) -> MLP:
    """Return the MLP from d inputs to h = `n_components` outputs by its hidden layers."""
    return MLP((d, *hidden, n_components))


class ResMLP(networks.ResMLP):
    """The network of appendix B.2 with h outputs, its weights from torch's global generator, which is seeded for it.

    Parameters
    ----------
    d, width, n_blocks, bottleneck : int
        As in `mercer.networks.ResMLP`.
    n_components : int
        h.
    """

    def __init__(self, d: int, width: int, n_components: int, n_blocks: int = 3, bottleneck: int = 4) -> None:
        seed = int(torch.randint(2**31 - 1, ()))
        super().__init__(d, width, n_components, n_blocks, bottleneck, random_state=seed)


def parameters_of(module: nn.Module) -> int:
    """Return how many numbers a module has that could be trained."""
    return sum(parameter.numel() for parameter in module.parameters())


def kernel_cost(d: int, n_components: int, n_landmarks: int, rank: int | None = None) -> int:
    """Return the multiply-adds of a step of a kernel embedding, for a view of a row: m d + m r + 2 r h.

    These are its kernel values with m landmarks, its r coordinates in which these are white, f = W^T z, and the
    gradient by W; none goes to z. Views are drawn anew for each batch.

    Parameters
    ----------
    d : int
    n_components : int
        h.
    n_landmarks : int
        m.
    rank : int or None, default=None
        r; None is m, which it is at most.
    """
    r = n_landmarks if rank is None else rank
    return n_landmarks * (d + r) + 2 * r * n_components


def resmlp_cost(d: int, n_components: int, width: int, n_blocks: int = 3, bottleneck: int = 4) -> int:
    """Return the multiply-adds of a step of the ResMLP, for a view of a row.

    The products of its layers, three times: forward, the gradient by the weights and that by what comes in, which the
    first layer does not need. Of the attention only its value is computed.

    Parameters
    ----------
    d, n_components, width, n_blocks, bottleneck : int
        As in `ResMLP`.
    """
    inside = width * (width + n_blocks * 2 * (width // bottleneck) + n_components)
    return 2 * d * width + 3 * inside


def resmlp_width(
    d: int, n_components: int, n_landmarks: int, *, rank: int | None = None, n_blocks: int = 3, bottleneck: int = 4
) -> int:
    """How wide may the ResMLP be, to cost no more to train than a kernel embedding with m landmarks?

    Multiply-adds of matrix products are counted. What is of lower order is not (exponentials, GELU, Adam), nor what is
    the same for both (views, loss) or is done once (the kernel's sums over all rows). BYOL's target is not either: it
    costs the network one forward pass more, a third, and the kernel r h.

    Parameters
    ----------
    d, n_components, n_landmarks, rank
        As in `kernel_cost`.
    n_blocks, bottleneck : int
        As in `ResMLP`.

    Returns
    -------
    int
        The largest multiple of `bottleneck`.
    """
    budget = kernel_cost(d, n_components, n_landmarks, rank)

    def affords(width: int) -> bool:
        return resmlp_cost(d, n_components, width, n_blocks, bottleneck) <= budget

    if not affords(bottleneck):
        raise invalid_parameter("n_landmarks", n_landmarks, f"so many that a width of {bottleneck} costs no more")
    return next(width for width in count(bottleneck, bottleneck) if not affords(width + bottleneck))
