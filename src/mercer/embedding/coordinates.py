"""The kernel features of views, in the coordinates in which an embedding is trained."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mercer.embedding.centers import Centers
from mercer.losses import tikhonov
from mercer.views.sources import ViewSource

BatchFeatures = Callable[[Tensor, torch.Generator], list[Tensor]]
"""A function (row numbers, generator) -> the features of each view of these b rows, of shape (b, r)."""


class Coordinates(NamedTuple):
    """The map from views to their kernel features z, in which embeddings W^T z + γ are linear.

    In white coordinates, z = B^T (k(x) - origin) with B^T K_mm B = I. The squared norm of W^T z in the kernel's space
    is then |W|^2, so that gradient steps in W are gradient steps in the kernel's space. In raw coordinates,
    z = k(x) - origin, W is A, and the squared norm is Tr(A^T K_mm A).

    Attributes
    ----------
    centers : Centers
    B : tensor of shape (m, r)
        The matrix that whitens the landmarks.
    origin : tensor of shape (m,) or None
        The kernel values at which features are centered; None for no centering.
    K_mm : tensor of shape (m, m) or None
        The kernel matrix of the landmarks for raw coordinates; None for white ones.
    """

    centers: Centers
    B: Tensor
    origin: Tensor | None
    K_mm: Tensor | None = None

    def raw(self) -> "Coordinates":
        """Return the raw coordinates with the same centers, B and origin."""
        return self._replace(K_mm=self.centers.gram())

    def map(self) -> Callable[[Sequence[Tensor]], list[Tensor]]:
        """Return the function views -> z of each; what depends on the landmarks alone is computed once, here."""
        values, like = self.centers.values(), self.centers.like
        B = self.B.to(like) if self.K_mm is None else None
        origin = self.origin if B is None or self.origin is None else self.origin @ self.B
        shift = None if origin is None else origin.to(like)

        def features(views: Sequence[Tensor]) -> list[Tensor]:
            with torch.no_grad():
                mapped = [K if B is None else K @ B for K in values(views)]
                return mapped if shift is None else [Z - shift for Z in mapped]

        return features

    def from_white(self, W: Tensor) -> Tensor:
        """Convert W from white coordinates to these."""
        return W if self.K_mm is None else self.B @ W

    def to_white(self, W: Tensor) -> Tensor:
        """Convert W from these coordinates to white ones."""
        return W if self.K_mm is None else self.B.T @ (self.K_mm @ W.to(self.K_mm))

    def gram(self, W: Tensor) -> Tensor:
        """Return A^T K_mm A, of shape (h, h): the inner products of the components in the kernel's space."""
        return W.T @ (W if self.K_mm is None else self.K_mm.to(W) @ W)

    def squared_norm(self, W: Tensor) -> Tensor:
        """Return Tr(A^T K_mm A), the squared norm of the embedding in the kernel's space."""
        return tikhonov(W, None if self.K_mm is None else self.K_mm.to(W))


def drawn_features(coordinates: Coordinates, source: ViewSource) -> BatchFeatures:
    """Return the function that draws new views for each batch and computes their features.

    O(b p m (d + r)) time for each batch of b rows with p views.
    """
    features, like = coordinates.map(), coordinates.centers.like

    def batch(rows: Tensor, generator: torch.Generator) -> list[Tensor]:
        return features(source.batch(rows.numpy(), generator, like))

    return batch


def all_features(coordinates: Coordinates, source: ViewSource) -> list[Tensor]:
    """Return the features of all rows, a tensor of shape (n, r) for each view; the views are those of the moments."""
    features, like = coordinates.map(), coordinates.centers.like
    kept: list[Tensor] = []
    start = 0
    for views in source.chunks(like):
        blocks = features(views)
        # The result is allocated at once: concatenating blocks at the end would need twice the memory.
        kept = kept or [block.new_empty((source.n_rows, block.shape[1])) for block in blocks]
        for Z, block in zip(kept, blocks, strict=True):
            Z[start : start + len(block)] = block
        start += len(blocks[0])
    return kept


def kept_features(coordinates: Coordinates, source: ViewSource) -> BatchFeatures:
    """Return the function that looks up the features of a batch; views are drawn once, and n p r numbers are kept."""
    return features_at_hand(all_features(coordinates, source))


def features_at_hand(kept: Sequence[Tensor]) -> BatchFeatures:
    """Return the function that looks up the features of a batch in those of all rows, of shape (n, r) for each view."""

    def batch(rows: Tensor, generator: torch.Generator) -> list[Tensor]:
        return [Z.index_select(0, rows.to(Z.device)) for Z in kept]

    return batch
