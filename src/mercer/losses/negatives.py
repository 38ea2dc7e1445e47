"""The drawing of the negative x- of each sample, for contrastive losses."""

import torch
from torch import Tensor

from mercer.checks import check_count


def draw_negatives(n: int, generator: torch.Generator) -> Tensor:
    """Return the index of another sample for each of n samples, drawn uniformly from the others.

    `spectral_contrastive(a, b, negatives=b[draw_negatives(len(b), generator)])` is the loss over triples (x, x+, x-) as
    Esser et al. (2024) write it. Its mean over all draws is the mean over all pairs of different samples. The losses
    use all pairs by default, which has far less noise at the same cost.

    Parameters
    ----------
    n : int
        The number of samples, at least 2.
    generator : torch.Generator
        The source of the random numbers. The indices are on its device.
    """
    check_count("n", n, at_least=2)
    rows = torch.arange(n, device=generator.device)
    return (rows + torch.randint(1, n, (n,), generator=generator, device=generator.device)) % n
