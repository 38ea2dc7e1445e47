"""Bootstrap your own latent, BYOL (Grill et al. 2020): a view predicts the other's embedding by an averaged model."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils import skip_init

from mercer.checks import check_count, check_number
from mercer.losses.directions import unit
from mercer.losses.objective import Embed, Objective
from mercer.losses.pairs import check_views


def byol(predictions: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
    """Return the squared distances 2 - 2 cos(q, t) between predictions and targets, both scaled to length 1.

    The prediction q of each of two views is compared with the target t of the other. The result is the sum over both
    ways, as a mean over samples. For p > 2 views it is the mean over pairs of views. The targets get no gradient.

    Parameters
    ----------
    predictions : sequence of two or more tensors of shape (n, h)
        For each view, the output of the predictor for its embedding.
    targets : sequence of as many tensors of shape (n, h)
        For each view, its embedding by the target network.
    """
    check_views([*predictions, *targets], at_least=4)
    if len(predictions) != len(targets):
        raise ValueError(f"there are {len(predictions)} predictions and {len(targets)} targets: each view needs both.")
    q, t = unit(torch.stack(list(predictions)), dim=2), unit(torch.stack(list(targets)).detach(), dim=2)
    p, n, _ = q.shape
    # The sum over all pairs of different views.
    cosines = (q.sum(dim=0) * t.sum(dim=0)).sum() - (q * t).sum()
    return 4.0 - 4.0 * cosines / (n * p * (p - 1))


def target_rate(step: int, total_steps: int, start: float = 0.996) -> float:
    """Return tau = 1 - (1 - start) (cos(pi step / total_steps) + 1) / 2, the share of itself that the target keeps.

    Parameters
    ----------
    step : int
        The number of steps before this one.
    total_steps : int
    start : float, default=0.996
        The value of tau at step 0. It rises to 1 at the end.
    """
    share = min(step / total_steps, 1.0)
    return 1.0 - (1.0 - start) * (math.cos(math.pi * share) + 1.0) / 2.0


class BYOL(Objective):
    """The objective of BYOL, with a predictor and with a target network that is a moving average of the model.

    The predictor is that of the authors: a linear layer, batch normalization, a ReLU and a linear layer without bias.
    The target starts as a copy of the model. After each step it becomes tau target + (1 - tau) model, with tau from
    `target_rate`.

    Parameters
    ----------
    n_components : int
        h, the number of components of an embedding.
    hidden : int, default=4096
        The width of the predictor. The default is the authors'.
    rate : float, default=0.996
        tau at the first step. The default is the authors' for 1000 epochs; they use 0.99 for 100 and 300 epochs and
        0.97 for 40.
    generator : torch.Generator
        The source of the predictor's initial weights.

    Notes
    -----
    The model must be a torch module, since the target is the model with other parameters; it shares the model's
    buffers. Each view is embedded twice. If most of the cost does not depend on the parameters, as for kernel values
    with landmarks, pass these values as the views and train the map that follows them.
    """

    def __init__(
        self, n_components: int, *, generator: torch.Generator, hidden: int = 4096, rate: float = 0.996
    ) -> None:
        super().__init__()
        h = check_count("n_components", n_components)
        width = check_count("hidden", hidden)
        self.rate = check_number("rate", rate, at_least=0.0, at_most=1.0)
        self.predictor = torch.nn.Sequential(
            _linear(h, width, generator, bias=True),
            torch.nn.BatchNorm1d(width),
            torch.nn.ReLU(),
            _linear(width, h, generator, bias=False),
        )
        self.target = torch.nn.Module()

    def begin(self, model: torch.nn.Module) -> None:
        """Set the target to a copy of the model's parameters."""
        self.target = torch.nn.Module()
        for name, parameter in model.named_parameters():
            self.target.register_buffer(_buffer_name(name), parameter.detach().clone())

    def batch_loss(self, embed: Embed, views: Sequence[Tensor], generator: torch.Generator) -> Tensor:
        """Return the loss of a batch; `embed` is the model that `begin` was called with."""
        if not isinstance(embed, torch.nn.Module):
            raise ValueError(f"embed is {embed!r}: BYOL needs the model itself, a torch.nn.Module.")
        averages = dict(self.target.named_buffers())
        names = [name for name, _ in embed.named_parameters()]
        if {_buffer_name(name) for name in names} != set(averages):
            raise ValueError(
                "the target does not have the parameters of the model: call begin(model) before the first batch."
            )
        parameters = {name: averages[_buffer_name(name)] for name in names}
        with torch.no_grad():
            targets = [torch.func.functional_call(embed, parameters, (view,)) for view in views]
        return byol([self.predictor(embed(view)) for view in views], targets)

    @torch.no_grad()
    def after_step(self, model: torch.nn.Module, step: int, total_steps: int) -> None:
        """Move the target towards the model by a share 1 - tau."""
        tau = target_rate(step, total_steps, self.rate)
        averages = dict(self.target.named_buffers())
        for name, parameter in model.named_parameters():
            averages[_buffer_name(name)].lerp_(parameter.detach(), 1.0 - tau)


def _buffer_name(parameter: str) -> str:
    """Return the name of a parameter's buffer, in which torch does not allow dots."""
    return parameter.replace(".", "/")


def _linear(n_in: int, n_out: int, generator: torch.Generator, *, bias: bool) -> torch.nn.Linear:
    """Return a linear layer initialized as by the authors.

    The weights are normal with standard deviation n_in^-1/2, truncated at two deviations, and the bias is zero.
    """
    layer = skip_init(torch.nn.Linear, n_in, n_out, bias=bias)  # torch's own initialization uses the global generator
    deviation = n_in**-0.5
    torch.nn.init.trunc_normal_(layer.weight, std=deviation, a=-2 * deviation, b=2 * deviation, generator=generator)
    if bias:
        torch.nn.init.zeros_(layer.bias)
    return layer
