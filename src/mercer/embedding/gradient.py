"""Embeddings trained by gradient: f(x) = W^T z on kernel features z of views that are drawn for every batch."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from mercer.embedding.moments import Statistics
from mercer.embedding.samples import ViewSource
from mercer.exceptions import invalid_parameter
from mercer.kernels import Gaussian, Kernel
from mercer.losses import (
    BYOL,
    FromEmbeddings,
    KernelAutoencoder,
    Objective,
    barlow_twins,
    kernel_pca,
    orthonormal,
    simclr,
    simple_contrastive,
    spectral_contrastive,
    vicreg,
)
from mercer.training import Recipe, Training, train
from mercer.training.batches import count_batches

# Losses by the names that estimators take; those with an exact optimum can be trained too.
PURE: dict[str, Callable[..., Tensor]] = {
    "simclr": simclr,
    "vicreg": vicreg,
    "barlow_twins": barlow_twins,
    "spectral_contrastive": spectral_contrastive,
    "simple_contrastive": simple_contrastive,
}
GRADIENT_LOSSES = (*PURE, "byol", "kernel_autoencoder", "kernel_pca")
# Those that learn from the rows as they are.
WITHOUT_VIEWS = ("kernel_pca", "kernel_autoencoder")
STARTS = ("principal", "kaiming", "spectral")
# The kernel autoencoder's decoder has at most so many centres.
DECODER_LANDMARKS = 300
DEFAULT_RECIPE = Recipe(n_epochs=20, batch_size=256, learning_rate=1e-3, warmup_epochs=1.0)


class Coordinates(NamedTuple):
    """Rows -> z = B^T (k(x) - origin), their kernel features in coordinates in which the landmarks are white.

    Attributes
    ----------
    kernel : Kernel
    landmarks : tensor of shape (m, d)
    B : tensor of shape (m, r)
    origin : tensor of shape (m,) or None
    """

    kernel: Kernel
    landmarks: Tensor
    B: Tensor
    origin: Tensor | None

    def prepared(self) -> Callable[[Tensor], Tensor]:
        """Return the map, with what depends on the landmarks alone done once."""
        z = self.kernel.prepare(self.landmarks)
        B = self.B.to(self.landmarks)
        shift = None if self.origin is None else (self.origin @ self.B).to(self.landmarks)

        def features(x: Tensor) -> Tensor:
            with torch.no_grad():
                Z = self.kernel.values(self.kernel.prepare(x.to(self.landmarks), beside=z), z) @ B
                return Z if shift is None else Z - shift

        return features


class LinearMap(nn.Module):
    """f = W^T z."""

    def __init__(self, W: Tensor) -> None:
        super().__init__()
        self.W = nn.Parameter(W.clone())

    def forward(self, z: Tensor) -> Tensor:
        """Return the embeddings of features, of shape (n, h)."""
        return z @ self.W


class Trained(nn.Module):
    """The map, its objective, and how many steps were made: all that a checkpoint holds."""

    steps: Tensor

    def __init__(self, model: LinearMap, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))


def views_needed(loss: Any) -> int:
    """Return how many views of a row a loss needs at least."""
    if isinstance(loss, Objective):
        return loss.min_views
    return 1 if isinstance(loss, str) and loss in WITHOUT_VIEWS else 2


def make_objective(loss: Any, coordinates: Coordinates, n_components: int, *, negatives: str, seed: int) -> Objective:
    """Return the objective of a loss: by its name, of any callable of the views' embeddings, or as it is.

    Parameters
    ----------
    loss : str, callable or Objective
    coordinates : Coordinates
    n_components : int
        h.
    negatives : {"all", "drawn"}
        As in `mercer.losses.objective.FromEmbeddings`.
    seed : int
        Draws the initial weights of predictors.
    """
    if isinstance(loss, Objective):
        return loss
    if callable(loss):
        return FromEmbeddings(loss, negatives=negatives)
    if loss in PURE:
        return FromEmbeddings(PURE[loss], negatives=negatives)
    generator = torch.Generator().manual_seed(seed)
    if loss == "byol":
        return BYOL(n_components, generator=generator)
    if loss == "kernel_autoencoder":
        centres = coordinates.prepared()(coordinates.landmarks[:DECODER_LANDMARKS])
        return KernelAutoencoder(centres, n_components, kernel=Gaussian(n_components**0.5))
    raise invalid_parameter("loss", loss, GRADIENT_LOSSES, "A callable of the views' embeddings will do too.")


def started(start: str, stats: Statistics, spectral: Callable[[], Tensor], n_components: int, seed: int) -> Tensor:
    """Return W to start from, of shape (r, h).

    "principal" are the kernel principal components of the landmarks (krepes, section 3.1), which in coordinates in
    which these are white are the first columns of the identity. "kaiming" are normal numbers of variance 2 / r.
    "spectral" is the exact optimum of the spectral contrastive loss, with random columns where it has fewer.
    """
    r = len(stats.mean)
    random = torch.randn((r, n_components), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    random = (random * (2.0 / r) ** 0.5).to(stats.mean)
    if start == "principal":
        return torch.eye(r, n_components).to(stats.mean)
    if start == "spectral":
        W = spectral()
        return torch.cat([W, random[:, W.shape[1] :]], dim=1)
    return random


def trained(
    loss: Any,
    stats: Statistics,
    coordinates: Coordinates,
    source: ViewSource,
    W: Tensor,
    recipe: Recipe,
    *,
    ridge: float,
    negatives: str,
    seed: int,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Any = None,
    settings: dict[str, Any] | None = None,
    data: str = "",
) -> tuple[Tensor, Training]:
    """Minimise a loss of the embeddings of views, plus ridge |W|^2, by steps from W.

    In these coordinates Tikhonov's Tr(A^T K_mm A) is |W|^2, and the constraint A^T K_mm A = I, which the simple
    contrastive loss needs, is W^T W = I: after each step W goes to the nearest such matrix.

    Parameters
    ----------
    loss : str, callable or Objective
    stats : Statistics
        Means over all rows.
    coordinates : Coordinates
    source : DrawnViews or GivenViews
    W : tensor of shape (r, h)
    recipe : Recipe
    ridge : float
    negatives : {"all", "drawn"}
    seed : int
    checkpoint, progress, settings, data
        As in `mercer.training.train`.

    Returns
    -------
    W of shape (r, h), and how the training went

    Notes
    -----
    A step on a batch of b rows with p views costs O(b p (m d + m r + r h)) and what the loss costs.
    """
    features = coordinates.prepared()
    like = coordinates.landmarks
    model = LinearMap(W.to(like))
    if loss == "kernel_pca":
        principal = partial(_kernel_pca_of, model, stats.diagonal)
        objective: Objective = FromEmbeddings(principal, min_views=1)
    else:
        objective = make_objective(loss, coordinates, W.shape[1], negatives=negatives, seed=seed)
    objective.to(like)
    objective.begin(model)
    module = Trained(model, objective)
    n_rows = source.n_rows
    total_steps = recipe.n_epochs * count_batches(n_rows, recipe.batch_size, objective.min_batch)

    def batch_loss(rows: Tensor, generator: torch.Generator) -> Tensor:
        views = [features(view) for view in source.batch(rows.numpy(), generator, like)]
        return objective(model, views, generator) + ridge * model.W.square().sum()

    def after_step() -> None:
        with torch.no_grad():
            if loss == "simple_contrastive":
                model.W.copy_(orthonormal(model.W))
            objective.after_step(model, int(module.steps), total_steps)
            module.steps += 1

    result = train(
        module, batch_loss, n_rows, recipe,
        seed=seed, min_batch=objective.min_batch, after_step=after_step, progress=progress, checkpoint=checkpoint,
        settings=settings, data=data,
    )  # fmt: skip
    return model.W.detach().to(stats.mean), result


def _kernel_pca_of(model: LinearMap, diagonal: float, *views: Tensor) -> Tensor:
    return kernel_pca(*views, gram=model.W.T @ model.W, diagonal=diagonal)


def batched_loss(loss: Any, views: list[Tensor], batch_size: int | None) -> float:
    """Return the loss of embeddings, as a mean over batches of them in their order; of all at once if None."""
    function = PURE[loss] if isinstance(loss, str) and loss in PURE else loss
    if not callable(function) or isinstance(function, Objective):
        raise ValueError(
            f"loss={loss!r} has parts beside the embedding, which are not kept: score() cannot say what it is. "
            "mercer.evaluate.probe_scorer scores by labels."
        )
    n = len(views[0])
    n_batches = 1 if batch_size is None else count_batches(n, batch_size)
    parts = [torch.tensor_split(view, n_batches) for view in views]
    losses = [float(function(*batch)) * len(batch[0]) for batch in zip(*parts, strict=True)]
    return sum(losses) / n
