"""The networks of Table 1 (appendix B.2), and the cost of a training step compared with that of a kernel embedding."""

from collections.abc import Sequence
from itertools import count, pairwise

import torch
from torch import Tensor, nn

from mercer import networks
from mercer.checks import check_count
from mercer.exceptions import invalid_parameter


class MLP(nn.Module):
    """Linear layers with GELU between them, such as 784-1000-1000-150.

    The paper does not say which network, if any, it uses for MNIST. GELU is the activation of its other network, so
    that the two differ by their layers alone.

    Parameters
    ----------
    widths : sequence of int
        The widths of the inputs, the hidden layers and the embeddings.
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
    """Return the MLP from d inputs to h = `n_components` outputs with hidden layers of these widths."""
    return MLP((d, *hidden, n_components))


class ResMLP(networks.ResMLP):
    """The network of appendix B.2 with h outputs; its weights follow from torch's global generator, seeded for it.

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
    """Return the number of parameters of a module."""
    return sum(parameter.numel() for parameter in module.parameters())


def kernel_cost(d: int, n_components: int, n_landmarks: int, rank: int | None = None) -> int:
    """Return the multiply-adds of a training step of a kernel embedding for one view of a row: m d + m r + 2 r h.

    The terms are the kernel values with m landmarks, the r white coordinates z, the embedding f = W^T z, and the
    gradient by W. There is no gradient by z. Views are drawn anew for each batch.

    Parameters
    ----------
    d : int
        The number of columns.
    n_components : int
        h.
    n_landmarks : int
        m.
    rank : int or None, default=None
        r, at most m. None takes m.
    """
    r = n_landmarks if rank is None else rank
    return n_landmarks * (d + r) + 2 * r * n_components


def resmlp_cost(d: int, n_components: int, width: int, n_blocks: int = 3, bottleneck: int = 4) -> int:
    """Return the multiply-adds of a training step of the ResMLP for one view of a row.

    The products of each layer count three times: forward, the gradient by the weights, and the gradient by the inputs.
    The first layer does not need the last one. Of the attention only its value is computed.

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
    """Return the largest width with which the ResMLP costs no more to train than a kernel embedding with m landmarks.

    The multiply-adds of matrix products are counted. Not counted are operations of lower order (exponentials, GELU,
    Adam), those that are the same for both (views, loss), those that are done once (the sums of the kernel over all
    rows), and the target of BYOL. The latter costs the network one more forward pass, a third, and the kernel r h.

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
