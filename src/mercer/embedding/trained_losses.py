"""The losses that can be minimized by gradient steps, by their names, and the objective of each."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from mercer.embedding.coordinates import Coordinates
from mercer.exceptions import invalid_parameter
from mercer.losses import BYOL, OF_VIEWS, FromEmbeddings, Objective, kernel_pca
from mercer.losses.objective import Embed
from mercer.training.batches import count_batches

# Functions of the embeddings alone. Losses with an exact optimum are among them, since they can also be trained.
PURE = OF_VIEWS
GRADIENT_LOSSES = (*PURE, "byol", "kernel_pca")
AUTOENCODER = "kernel_autoencoder"
# Losses that are computed from the rows themselves, without views.
WITHOUT_VIEWS = ("kernel_pca", AUTOENCODER)
# Losses under the constraint A^T K_mm A = I.
CONSTRAINED = ("simple_contrastive",)


def views_needed(loss: Any) -> int:
    """Return the smallest number of views of a row that a loss needs."""
    if isinstance(loss, Objective):
        return loss.min_views
    return 1 if isinstance(loss, str) and loss in WITHOUT_VIEWS else 2


def make_objective(loss: Any, n_components: int, *, seed: int) -> Objective:
    """Return the objective of a loss that is given by its name, as a callable of the views' embeddings or as objective.

    Parameters
    ----------
    loss : str, callable or Objective
    n_components : int
        h.
    seed : int
        Determines the initial weights of the predictor of "byol".
    """
    if isinstance(loss, Objective):
        return loss
    if callable(loss):
        return FromEmbeddings(loss)
    if loss in PURE:
        return FromEmbeddings(PURE[loss])
    if loss == "byol":
        return BYOL(n_components, generator=torch.Generator().manual_seed(seed))
    raise invalid_parameter("loss", loss, GRADIENT_LOSSES, "A callable of the views' embeddings is accepted too.")


class PrincipalObjective(Objective):
    """The objective of kernel PCA, which depends on the map W through A^T K_mm A, and not only on the embeddings.

    Parameters
    ----------
    space : Coordinates
        The coordinates of the features that W acts on.
    diagonal : float
        The mean of |φ(x)|^2, or of |φ(x) - c|^2 if the features are centered at an origin c.
    """

    min_views = 1

    def __init__(self, space: Coordinates, diagonal: float) -> None:
        super().__init__()
        self.space, self.diagonal = space, diagonal

    def batch_loss(self, embed: Embed, views: Sequence[Tensor], generator: torch.Generator) -> Tensor:
        """Return the loss of a batch; `embed` is a `LinearMap`."""
        return kernel_pca(*(embed(view) for view in views), gram=self.space.gram(embed.W), diagonal=self.diagonal)  # type: ignore[attr-defined]


def batched_loss(loss: Any, views: list[Tensor], batch_size: int | None) -> float:
    """Return the loss of embeddings as the mean over batches in their order, or over all rows at once if None."""
    function = PURE[loss] if isinstance(loss, str) and loss in PURE else loss
    if isinstance(function, FromEmbeddings):
        function = function.loss
    if not callable(function) or isinstance(function, Objective):
        raise ValueError(
            f"loss={loss!r} has parts beside the embedding, which are not kept: score() cannot say what it is. "
            "mercer.embedding.linear_probe.probe_scorer scores by labels."
        )
    n_batches = 1 if batch_size is None else count_batches(len(views[0]), batch_size)
    return mean_over_batches(lambda batch: function(*batch), views, n_batches)


def mean_over_batches(loss: Callable[[Sequence[Tensor]], Any], views: Sequence[Tensor], n_batches: int) -> float:
    """Return the mean over rows of a loss that is computed on batches of the rows, in their order.

    Parameters
    ----------
    loss : callable
        (the rows of a batch, one tensor for each view) -> the loss of the batch.
    views : sequence of tensors with n rows each
    n_batches : int
    """
    parts = [torch.tensor_split(view, n_batches) for view in views]
    losses = [float(loss(batch)) * len(batch[0]) for batch in zip(*parts, strict=True)]
    return sum(losses) / len(views[0])
