"""Neural networks that are trained with the same losses, views and steps as kernel embeddings, for Table 1."""

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from mercer.blocks import as_tensor, row_slices
from mercer.checks import check_choice
from mercer.embedding.trained_losses import make_objective
from mercer.networks.heads import standardization
from mercer.training import Recipe, train
from mercer.training.batches import count_batches
from mercer.training.randomness import global_chance_from, seed_of
from mercer.views.sources import Augmented, DrawnViews, check_samples

from .paper import TABLE_1_LOSSES

# The default of KernelEmbedding.
N_VIEWS = 2
ROWS_A_BLOCK = 2000


class Standardized(nn.Module):
    """A network whose inputs are standardized to mean 0 and variance 1 over all rows.

    The columns of a table are standardized one by one, and images by channels over all pixels. Rows are standardized in
    the same way before views are drawn (`mercer.views.sources.Augmented`), except for color images.

    Parameters
    ----------
    network : nn.Module
    X : ndarray of shape (n, d)
        The rows from which mean and variance are computed.
    shape : tuple of int
        The shape of one sample.
    """

    center: Tensor
    scale: Tensor

    def __init__(self, network: nn.Module, X: np.ndarray, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.network = network
        for name, part in zip(("center", "scale"), standardization(X, shape), strict=True):
            self.register_buffer(name, torch.from_numpy(part))

    def forward(self, x: Tensor) -> Tensor:
        """Return the embeddings of rows that are not standardized."""
        return self.network((x - self.center) / self.scale)


class NetworkEmbedding(TransformerMixin, BaseEstimator):
    """Train a network as KernelEmbedding trains W, with the same objective, rows, views and steps for the same seed.

    As there, both the loss and the probe use the outputs themselves: no head is added for the training.

    Parameters
    ----------
    network : callable
        (d=, n_components=) -> nn.Module. Its weights are drawn by torch's global generator, which is seeded for it.
    loss : {"barlow_twins", "simclr", "vicreg", "byol"}
    recipe : Recipe
    n_components : int
        h.
    augment : as in KernelEmbedding, default="auto"
    image_shape : tuple of int or None, default=None
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    network_ : Standardized
        The trained network.
    history_ : list of dict
        The epochs, as returned by `mercer.training.train`.
    sample_shape_ : tuple of int
        The shape of one sample.
    """

    def __init__(
        self,
        network: Callable[..., nn.Module],
        loss: str,
        recipe: Recipe,
        n_components: int,
        augment: Any = "auto",
        image_shape: Any = None,
        random_state: Any = None,
    ) -> None:
        self.network = network
        self.loss = loss
        self.recipe = recipe
        self.n_components = n_components
        self.augment = augment
        self.image_shape = image_shape
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "NetworkEmbedding":
        """Train the network on rows, with views that are drawn for each batch."""
        loss = check_choice("loss", self.loss, TABLE_1_LOSSES)
        X = check_samples(self, X, reset=True)
        # As in KernelEmbedding, the seed is the first draw, so that batches and views are the same.
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        source = DrawnViews(X, Augmented.fitted(self.augment, self.sample_shape_, X), N_VIEWS, seed)
        like = as_tensor(X[:1])
        with global_chance_from(seed_of(seed, "network"), like.device):
            network = self.network(d=X.shape[1], n_components=self.n_components)
        model = Standardized(network, X, self.sample_shape_).to(like)
        objective = make_objective(loss, self.n_components, seed=seed).to(like)
        objective.begin(model)
        n_steps = self.recipe.n_epochs * count_batches(len(X), self.recipe.batch_size, objective.min_batch)
        steps = count()
        result = train(
            nn.ModuleDict({"model": model, "objective": objective}),
            lambda rows, generator: objective(model, source.batch(rows.numpy(), generator, like), generator),
            len(X),
            self.recipe,
            seed=seed,
            min_batch=objective.min_batch,
            after_step=lambda: objective.after_step(model, next(steps), n_steps),
        )
        self.network_, self.history_ = model, result.history
        return self

    @torch.no_grad()
    def transform(self, X: Any) -> np.ndarray:
        """Return the embedding of each row, of shape (n, h)."""
        check_is_fitted(self)
        X = check_samples(self, X)
        dtype = self.network_.center.dtype
        blocks = row_slices(len(X), ROWS_A_BLOCK)
        return np.concatenate([self.network_(as_tensor(X[rows], dtype=dtype)).numpy() for rows in blocks])
