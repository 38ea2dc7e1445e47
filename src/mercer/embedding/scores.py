"""The loss of a fitted embedding on any rows, as `KernelEmbedding.score` reports it."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import as_tensor
from mercer.embedding.decoder import unexplained
from mercer.embedding.parameters import reconstructs, solver_of
from mercer.embedding.steps import Steps
from mercer.embedding.trained_losses import batched_loss
from mercer.landmarks.features import landmark_features
from mercer.losses import kernel_pca
from mercer.views.sources import DrawnViews


def loss_of_rows(embedding: Any, X: np.ndarray) -> float:
    """Return the loss without the penalty on views of rows; the views are drawn by the seed of the embedding."""
    if reconstructs(embedding):
        rows = torch.from_numpy(embedding.inverse_transform(embedding.transform(X)))
        return float(unexplained(torch.from_numpy(X), rows, embedding.decoder_.rows_mean))
    Z, A, bias = (
        as_tensor(part, device=embedding.device)
        for part in (embedding.landmarks_, embedding.coefficients_, embedding.bias_)
    )
    drawn = DrawnViews(X, embedding.augmented_, embedding.n_views, embedding.seed_)
    embedded = [
        [
            landmark_features(embedding.kernel_, x, Z, A, working_memory=embedding.working_memory).double() + bias
            for x in views
        ]
        for views in drawn.chunks(Z)
    ]
    views = [torch.cat(parts) for parts in zip(*embedded, strict=True)]
    if not (isinstance(embedding.loss, str) and embedding.loss == "kernel_pca"):
        solver = solver_of(embedding)
        return batched_loss(embedding.loss, views, solver.batch_size if isinstance(solver, Steps) else None)
    K_mm = embedding.kernel_.matrix(Z.double())
    return float(kernel_pca(*views, gram=A.double().T @ K_mm @ A.double(), diagonal=mean_square(embedding, X, Z, K_mm)))


def mean_square(embedding: Any, X: np.ndarray, Z: Tensor, K_mm: Tensor) -> float:
    """Return the mean over rows of |φ(x) - c|^2, where c is the element at which embeddings are centered, or 0."""
    diagonal = float(np.mean(embedding.kernel_.diagonal(X)))
    if embedding.center_ is None:
        return diagonal
    v = as_tensor(embedding.center_, device=embedding.device)
    products = landmark_features(embedding.kernel_, X, Z, v.to(Z)[:, None], working_memory=embedding.working_memory)
    return diagonal - 2.0 * float(products.double().mean()) + float(v @ K_mm @ v)
