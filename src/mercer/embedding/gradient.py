"""Embeddings trained by gradient: f(x) = W^T z on kernel features z of views that are drawn for every batch."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from mercer.embedding.coordinates import BatchFeatures, Coordinates, drawn_features, kept_features
from mercer.embedding.moments import Statistics
from mercer.embedding.preconditioners import preconditioner
from mercer.exceptions import invalid_parameter
from mercer.kernels import Gaussian
from mercer.losses import (
    BYOL,
    FromEmbeddings,
    KernelAutoencoder,
    Objective,
    barlow_twins,
    kernel_pca,
    simclr,
    simple_contrastive,
    spectral_contrastive,
    vicreg,
)
from mercer.training import Recipe, Training, train
from mercer.training.batches import count_batches
from mercer.views.sources import ViewSource

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
# Those of `PRECONDITIONERS` under which W is A, the coefficients of the landmarks.
RAW = ("none", "kernel")
# λ of K_mm + λ I, as a share of the mean of k(x, x).
KERNEL_RIDGE = 1e-3
ADAM = Recipe(n_epochs=20, batch_size=256, learning_rate=1e-3, warmup_epochs=1.0)
# Curvature is that of a batch, so that it wants large ones; its steps have a length of their own, so that SGD does.
GAUSS_NEWTON = Recipe(n_epochs=5, batch_size=1024, optimizer="sgd", learning_rate=0.5, momentum=0.0)
DEFAULT_RECIPES = {"whitening": ADAM, "none": ADAM, "kernel": ADAM, "gauss_newton": GAUSS_NEWTON}


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


def make_objective(
    loss: Any, coordinates: Coordinates | None, n_components: int, *, negatives: str, seed: int
) -> Objective:
    """Return the objective of a loss: by its name, of any callable of the views' embeddings, or as it is.

    Parameters
    ----------
    loss : str, callable or Objective
    coordinates : Coordinates or None
        Of the landmarks that the kernel autoencoder has for centres; others need none.
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
    if loss == "kernel_autoencoder" and coordinates is not None:
        centres = coordinates.map()(coordinates.landmarks[:DECODER_LANDMARKS])
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
    precondition: str,
    redraw: bool,
    seed: int,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Any = None,
    settings: dict[str, Any] | None = None,
    data: str = "",
) -> tuple[Tensor, Training]:
    """Minimise a loss of the embeddings of views, plus ridge Tr(A^T K_mm A), by steps from W.

    The simple contrastive loss needs the constraint A^T K_mm A = I: after each step W goes to the nearest such matrix.

    Parameters
    ----------
    loss : str, callable or Objective
    stats : Statistics
        Means over all rows.
    coordinates : Coordinates
        White ones.
    source : DrawnViews or GivenViews
    W : tensor of shape (r, h)
        In white coordinates.
    recipe : Recipe
    ridge : float
    negatives : {"all", "drawn"}
    precondition : {"whitening", "none", "kernel", "gauss_newton"}
        Which coordinates steps are made in, and what is made of gradients; see `KernelEmbedding`.
    redraw : bool
        Whether views are drawn anew for each batch, or once.
    seed : int
    checkpoint, progress, settings, data
        As in `mercer.training.train`.

    Returns
    -------
    W of shape (r, h), in white coordinates, and how the training went

    Notes
    -----
    A step on a batch of b rows with p views costs O(b p r h) and what the loss costs, and O(b p m (d + r)) where views
    are drawn anew.
    """
    space = coordinates.raw() if precondition in RAW else coordinates
    features = (drawn_features if redraw else kept_features)(space, source)
    like = coordinates.landmarks
    model = LinearMap(space.from_white(W).to(like))
    if loss == "kernel_pca":
        principal = partial(_kernel_pca_of, model, space, stats.diagonal)
        objective: Objective = FromEmbeddings(principal, min_views=1)
    else:
        objective = make_objective(loss, space, W.shape[1], negatives=negatives, seed=seed)
    objective.to(like)
    objective.begin(model)
    module = Trained(model, objective)
    n_rows = source.n_rows
    total_steps = recipe.n_epochs * count_batches(n_rows, recipe.batch_size, objective.min_batch)

    def batch_loss(rows: Tensor, generator: torch.Generator) -> Tensor:
        value = objective(model, features(rows, generator), generator)
        return value + ridge * space.squared_norm(model.W) if ridge > 0 else value

    def after_step() -> None:
        with torch.no_grad():
            if loss == "simple_contrastive":
                model.W.copy_(space.orthonormal(model.W))
            objective.after_step(model, int(module.steps), total_steps)
            module.steps += 1

    result = train(
        module,
        batch_loss,
        n_rows,
        recipe,
        seed=seed,
        min_batch=objective.min_batch,
        after_step=after_step,
        progress=progress,
        checkpoint=checkpoint,
        precondition=_preconditioned(precondition, loss, model, features, space, ridge),
        settings=settings,
        data=data,
    )
    return space.to_white(model.W.detach()).to(stats.mean), result


def _preconditioned(
    name: str, loss: Any, model: LinearMap, features: BatchFeatures, space: Coordinates, ridge: float
) -> Callable[[Tensor, torch.Generator], None] | None:
    """Return what `train` does to the gradient of W before a step; None if nothing."""
    if name not in ("kernel", "gauss_newton"):
        return None
    # In units of the kernel, of which the mean of its diagonal is one.
    small = KERNEL_RIDGE * float(space.K_mm.diagonal().mean()) if space.K_mm is not None else 0.0
    step = preconditioner(name, K_mm=space.K_mm, ridge=small, loss=loss, penalty=ridge)

    def precondition(rows: Tensor, generator: torch.Generator) -> None:
        # A loss that does not depend on W leaves no gradient, and nothing to make a step of.
        if model.W.grad is not None:
            views = features(rows, generator) if name == "gauss_newton" else []
            model.W.grad = step(model.W, views, model.W.grad)

    return precondition


def _kernel_pca_of(model: LinearMap, space: Coordinates, diagonal: float, *views: Tensor) -> Tensor:
    return kernel_pca(*views, gram=space.gram(model.W), diagonal=diagonal)


def batched_loss(loss: Any, views: list[Tensor], batch_size: int | None) -> float:
    """Return the loss of embeddings, as a mean over batches of them in their order; of all at once if None."""
    function = PURE[loss] if isinstance(loss, str) and loss in PURE else loss
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
