"""Views of tables: noise, features dropped, features swapped. They act on each value, whatever the shape."""

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.views.base import View, happens


class GaussianNoise(View):
    """x + scale e with e standard normal, for every value.

    Parameters
    ----------
    scale : float, default=0.1
        In the units of the values: standardize the columns of a table first.

    Examples
    --------
    >>> import torch
    >>> from mercer.views import GaussianNoise
    >>> view = GaussianNoise(scale=0.5)
    >>> view(torch.zeros(1000, 20), torch.Generator().manual_seed(0)).std().round(decimals=1)
    tensor(0.5000)
    """

    def __init__(self, scale: float = 0.1) -> None:
        self.scale = scale

    def apply(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        scale = check_number("scale", self.scale, at_least=0.0)
        noise = torch.randn(batch.shape, generator=generator, dtype=batch.dtype, device=generator.device)
        return noise.to(batch.device).mul_(scale).add_(batch)


class FeatureDropping(View):
    """Every value replaced by `fill` with a probability.

    Parameters
    ----------
    probability : float, default=0.1
    fill : float, default=0.0
        The mean, in columns that were standardized.
    """

    def __init__(self, probability: float = 0.1, fill: float = 0.0) -> None:
        self.probability = probability
        self.fill = fill

    def apply(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        probability = check_number("probability", self.probability, at_least=0.0, at_most=1.0)
        fill = check_number("fill", self.fill)
        return batch.masked_fill(happens(batch, tuple(batch.shape), generator, probability), fill)


class FeatureSwapping(View):
    """Every value replaced, with a probability, by that of the same feature in another sample of the batch.

    Unlike a dropped value, a swapped one is one that the feature does take: it is drawn from the feature's marginal
    distribution (SCARF, Bahri et al. 2022), which suits categories and skewed columns. The other sample is drawn
    anew for every value; a batch of one sample stays as it is.

    Parameters
    ----------
    probability : float, default=0.3
        SCARF swaps 0.6 of the features, each time the same number; here every feature has its own chance.
    """

    def __init__(self, probability: float = 0.3) -> None:
        self.probability = probability

    def apply(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        probability = check_number("probability", self.probability, at_least=0.0, at_most=1.0)
        n, rows = len(batch), batch.flatten(1)
        if n < 2:
            return batch.clone()
        steps = torch.randint(1, n, rows.shape, generator=generator, device=generator.device).to(batch.device)
        others = steps.add_(torch.arange(n, device=batch.device)[:, None]).remainder_(n)
        swapped = happens(rows, tuple(rows.shape), generator, probability)
        return torch.where(swapped, rows.gather(0, others), rows).reshape(batch.shape)
