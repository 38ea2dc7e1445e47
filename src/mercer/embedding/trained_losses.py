"""The losses that steps can be made on, by the names that estimators take."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mercer.embedding.coordinates import Coordinates
from mercer.exceptions import invalid_parameter
from mercer.losses import BYOL, OF_VIEWS, FromEmbeddings, Objective, kernel_pca
from mercer.losses.objective import Embed
from mercer.training.batches import count_batches

# Functions of the embeddings alone; those with an exact optimum can be trained too.
PURE = OF_VIEWS
GRADIENT_LOSSES = (*PURE, "byol", "kernel_pca")
AUTOENCODER = "kernel_autoencoder"
# Those that learn from the rows as they are.
WITHOUT_VIEWS = ("kernel_pca", AUTOENCODER)
# Those under A^T K_mm A = I.
CONSTRAINED = ("simple_contrastive",)


def views_needed(loss: Any) -> int:
    """Return how many views of a row a loss needs at least."""
    if isinstance(loss, Objective):
        return loss.min_views
    return 1 if isinstance(loss, str) and loss in WITHOUT_VIEWS else 2


def make_objective(loss: Any, n_components: int, *, seed: int) -> Objective:
    """Return the objective of a loss: by its name, of any callable of the views' embeddings, or as it is.

    Parameters
    ----------
    loss : str, callable or Objective
    n_components : int
        h.
    seed : int
        Draws the initial weights of predictors.
    """
    if isinstance(loss, Objective):
        return loss
    if callable(loss):
        return FromEmbeddings(loss)
    if loss in PURE:
        return FromEmbeddings(PURE[loss])
    if loss == "byol":
        return BYOL(n_components, generator=torch.Generator().manual_seed(seed))
    raise invalid_parameter("loss", loss, GRADIENT_LOSSES, "A callable of the views' embeddings will do too.")


class PrincipalObjective(Objective):
    """The objective of kernel PCA, which looks at the map W beside the embeddings: at A^T K_mm A.

    Parameters
    ----------
    space : Coordinates
        Of the features that W acts on.
    diagonal : float
        The mean of |φ(x)|^2, less the origin if there is one.
    """

    min_views = 1

    def __init__(self, space: Coordinates, diagonal: float) -> None:
        super().__init__()
        self.space, self.diagonal = space, diagonal

    def batch_loss(self, embed: Embed, views: Sequence[Tensor], generator: torch.Generator) -> Tensor:
        """Return the loss of a batch; `embed` is a `LinearMap`."""
        return kernel_pca(*(embed(view) for view in views), gram=self.space.gram(embed.W), diagonal=self.diagonal)  # type: ignore[attr-defined]


def batched_loss(loss: Any, views: list[Tensor], batch_size: int | None) -> float:
    """Return the loss of embeddings, as a mean over batches of them in their order; of all at once if None."""
    function = PURE[loss] if isinstance(loss, str) and loss in PURE else loss
    if isinstance(function, FromEmbeddings):
        function = function.loss
    if not callable(function) or isinstance(function, Objective):
        raise ValueError(
            f"loss={loss!r} has parts beside the embedding, which are not kept: score() cannot say what it is. "
            "mercer.embedding.linear_probe.probe_scorer scores by labels."
        )
    n = len(views[0])
    n_batches = 1 if batch_size is None else count_batches(n, batch_size)
    parts = [torch.tensor_split(view, n_batches) for view in views]
    losses = [float(function(*batch)) * len(batch[0]) for batch in zip(*parts, strict=True)]
    return sum(losses) / n
