"""How the negative x- of a sample is drawn."""

import torch
from torch import Tensor

from mercer.checks import check_count


def draw_negatives(n: int, generator: torch.Generator) -> Tensor:
    """Return, for each of n samples, the index of another one, all others being equally likely.

    `spectral_contrastive(a, b, negatives=b[draw_negatives(len(b), generator)])` is the loss over triples (x, x+, x-) as
    Esser et al. (2024) write it. Its mean over all draws is the mean over all pairs of different samples; the default
    of the losses, all pairs at once, has far less noise at the same cost.

    Parameters
    ----------
    n : int
        At least 2.
    generator : torch.Generator
        Where the random numbers come from; the indices are where it is.
    """
    check_count("n", n, at_least=2)
    rows = torch.arange(n, device=generator.device)
    return (rows + torch.randint(1, n, (n,), generator=generator, device=generator.device)) % n
