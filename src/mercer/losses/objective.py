"""What training needs of a loss: the loss of a batch, its own parameters, and an update after each step."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from mercer.checks import check_choice, check_count
from mercer.exceptions import invalid_parameter
from mercer.losses.negatives import draw_negatives

Embed = Callable[[Tensor], Tensor]
"""The model that is trained: a batch of inputs -> its embeddings, of shape (n, h)."""

NEGATIVES = ("all", "drawn")


class Objective(torch.nn.Module, ABC):
    """A loss that may have parameters and a memory of its own.

    A trainer calls `begin` once, hands `parameters()` to the optimizer beside those of the model, calls the objective
    with each batch, and calls `after_step` after each step. `state_dict()` holds everything that a checkpoint needs. To
    resume, call `begin` first, which allocates the state, and then load it.

    Attributes
    ----------
    min_views : int
        The smallest number of views of a row.
    min_batch : int
        The smallest number of rows in a batch.
    """

    min_views: int = 2
    min_batch: int = 2

    @property
    def name(self) -> str:
        """The name of the loss in error messages."""
        return type(self).__name__

    def begin(self, model: torch.nn.Module) -> None:
        """Initialize what the loss keeps of the model; most losses keep nothing."""

    def forward(self, embed: Embed, views: Sequence[Tensor], generator: torch.Generator) -> Tensor:
        """Return the loss of a batch, a scalar.

        Parameters
        ----------
        embed : callable
            The model: inputs -> embeddings of shape (n, h).
        views : sequence of tensors
            The inputs: p views of the n rows; row i of each is a view of the same row.
        generator : torch.Generator
            The source of all random numbers.
        """
        rows = [len(view) for view in views]
        if len(rows) < self.min_views or len(set(rows)) > 1:
            raise ValueError(
                f"the views have {rows} rows: {self.name} needs {self.min_views} or more views, of one size."
            )
        if rows[0] < self.min_batch:
            raise ValueError(f"the batch has {rows[0]} samples: {self.name} needs {self.min_batch} or more.")
        loss = self.batch_loss(embed, views, generator)
        if not isinstance(loss, Tensor) or loss.ndim != 0 or not loss.is_floating_point():
            got = f"a tensor of shape {tuple(loss.shape)} and {loss.dtype}" if isinstance(loss, Tensor) else repr(loss)
            raise ValueError(f"{self.name} returned {got}: a loss must be a scalar tensor of floats.")
        return loss

    @abstractmethod
    def batch_loss(self, embed: Embed, views: Sequence[Tensor], generator: torch.Generator) -> Tensor:
        """Return the loss of a batch that was checked; arguments as in `forward`."""

    def after_step(self, model: torch.nn.Module, step: int, total_steps: int) -> None:
        """Update the loss after a step of the optimizer; most losses do nothing.

        Parameters
        ----------
        model : torch.nn.Module
            With its new parameters.
        step : int
            The number of steps before this one: 0 after the first.
        total_steps : int
            The number of steps of the whole training.
        """


class FromEmbeddings(Objective):
    """The objective that is any function of the p views' embeddings.

    Parameters
    ----------
    loss : callable
        p tensors of shape (n, h) -> a scalar tensor, such as `simclr` or `partial(vicreg, covariance=2.0)`. If it is
        a torch module, its parameters are trained too.
    min_views : int, default=2
        The smallest number of views of a row.
    min_batch : int, default=2
        The smallest number of rows in a batch. One is rarely enough: variances, correlations and contrasts need
        several rows.
    negatives : {"all", "drawn"}, default="all"
        How x- is found for losses that take `negatives`: with "all" the loss uses all pairs of the batch; with "drawn"
        it gets one view of another row for each row, drawn anew for each batch.
    """

    def __init__(
        self, loss: Callable[..., Tensor], *, min_views: int = 2, min_batch: int = 2, negatives: str = "all"
    ) -> None:
        super().__init__()
        if not callable(loss):
            raise invalid_parameter("loss", loss, "a callable of the views' embeddings")
        self.loss = loss
        self.min_views = check_count("min_views", min_views)
        self.min_batch = check_count("min_batch", min_batch)
        self.negatives = check_choice("negatives", negatives, NEGATIVES)
        if negatives == "drawn":
            if not _takes(loss, "negatives"):
                raise invalid_parameter("negatives", negatives, f"'all' for {self.name}, which takes no negatives")
            self.min_batch = max(2, self.min_batch)

    @property
    def name(self) -> str:
        """The name of the loss in error messages."""
        function: Any = self.loss.func if isinstance(self.loss, partial) else self.loss
        return getattr(function, "__name__", None) or repr(function)

    def batch_loss(self, embed: Embed, views: Sequence[Tensor], generator: torch.Generator) -> Tensor:
        """Return the loss of the embeddings of a batch."""
        embeddings = [embed(view) for view in views]
        if self.negatives == "drawn":
            loss = self.loss(*embeddings, negatives=_drawn(embeddings, generator))
        else:
            loss = self.loss(*embeddings)
        if isinstance(loss, Tensor) and not loss.requires_grad and any(z.requires_grad for z in embeddings):
            raise ValueError(f"{self.name} returned a tensor that torch cannot differentiate by the embeddings.")
        return loss


def _drawn(embeddings: Sequence[Tensor], generator: torch.Generator) -> Tensor:
    """Return one view of another row for each row."""
    p, n = len(embeddings), len(embeddings[0])
    sample = draw_negatives(n, generator)
    view = torch.randint(p, (n,), generator=generator, device=generator.device)
    stacked = torch.stack(list(embeddings))
    return stacked[view.to(stacked.device), sample.to(stacked.device)]


def _takes(function: Callable[..., Any], keyword: str) -> bool:
    parameters = signature(function).parameters
    return keyword in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
