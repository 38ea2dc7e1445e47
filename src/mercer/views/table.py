"""Views of tables that change single values: noise, dropped features, swapped features. They accept any shape."""

import torch
from torch import Tensor

from mercer.checks import check_number
from mercer.views.base import View, happens


class GaussianNoise(View):
    """Rows with noise added to every value: x + scale e with e standard normal.

    Parameters
    ----------
    scale : float, default=0.1
        The standard deviation of the noise. It is the same for all columns, which should be standardized first.

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
    """Rows in which every value is replaced by `fill` with some probability.

    Parameters
    ----------
    probability : float, default=0.1
        The probability that a value is replaced.
    fill : float, default=0.0
        The new value. 0 is the mean of a standardized column.
    """

    def __init__(self, probability: float = 0.1, fill: float = 0.0) -> None:
        self.probability = probability
        self.fill = fill

    def apply(self, batch: Tensor, generator: torch.Generator) -> Tensor:
        probability = check_number("probability", self.probability, at_least=0.0, at_most=1.0)
        fill = check_number("fill", self.fill)
        return batch.masked_fill(happens(batch, tuple(batch.shape), generator, probability), fill)


class FeatureSwapping(View):
    """Rows in which every value is replaced, with some probability, by that of the same feature in another sample.

    The new value is one that the feature really takes, drawn from its marginal distribution (SCARF, Bahri et al. 2022).
    This suits categories and skewed columns better than a fixed value. The other sample is drawn from the batch, anew
    for every value. A batch of one sample is not changed.

    Parameters
    ----------
    probability : float, default=0.3
        The probability that a value is replaced. SCARF replaces a fixed number of features in each sample, 0.6 of all;
        here every feature is replaced independently of the others.
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
