"""Kernel features of views, in the coordinates that an embedding is trained in."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mercer.embedding.centers import Centers
from mercer.losses import tikhonov
from mercer.views.sources import ViewSource

BatchFeatures = Callable[[Tensor, torch.Generator], list[Tensor]]
"""(rows, generator) -> the features of each view of these rows, of shape (b, r)."""


class Coordinates(NamedTuple):
    """Views -> z, their kernel features, on which embeddings W^T z + γ are linear.

    White, z = B^T (k(x) - origin) with B^T K_mm B = I: the kernel's norm of W^T z is |W|, and steps along the gradient
    by W are steps in the kernel's space. As they are, z = k(x) - origin, W is A, and the norm is Tr(A^T K_mm A).

    Attributes
    ----------
    centers : Centers
    B : tensor of shape (m, r)
    origin : tensor of shape (m,) or None
    K_mm : tensor of shape (m, m) or None
        The kernel's values between landmarks, for coordinates as they are; None for white ones.
    """

    centers: Centers
    B: Tensor
    origin: Tensor | None
    K_mm: Tensor | None = None

    def raw(self) -> "Coordinates":
        """Return the coordinates as they are."""
        return self._replace(K_mm=self.centers.gram())

    def map(self) -> Callable[[Sequence[Tensor]], list[Tensor]]:
        """Return views -> z of each, with what depends on the landmarks alone done once."""
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
        """Return what W in white coordinates is in these."""
        return W if self.K_mm is None else self.B @ W

    def to_white(self, W: Tensor) -> Tensor:
        """Return what W is in white coordinates."""
        return W if self.K_mm is None else self.B.T @ (self.K_mm @ W.to(self.K_mm))

    def gram(self, W: Tensor) -> Tensor:
        """Return A^T K_mm A, of shape (h, h): the inner products of components in the kernel's space."""
        return W.T @ (W if self.K_mm is None else self.K_mm.to(W) @ W)

    def squared_norm(self, W: Tensor) -> Tensor:
        """Return Tr(A^T K_mm A)."""
        return tikhonov(W, None if self.K_mm is None else self.K_mm.to(W))


def drawn_features(coordinates: Coordinates, source: ViewSource) -> BatchFeatures:
    """Return the features of views that are drawn anew for each batch; O(b p m (d + r)) a batch."""
    features, like = coordinates.map(), coordinates.centers.like

    def batch(rows: Tensor, generator: torch.Generator) -> list[Tensor]:
        return features(source.batch(rows.numpy(), generator, like))

    return batch


def all_features(coordinates: Coordinates, source: ViewSource) -> list[Tensor]:
    """Return the features of all rows, one tensor of shape (n, r) a view: of the views that sums are made of."""
    features, like = coordinates.map(), coordinates.centers.like
    kept: list[Tensor] = []
    start = 0
    for views in source.chunks(like):
        blocks = features(views)
        # Room for all rows at once: blocks that are put together at the end would be there twice.
        kept = kept or [block.new_empty((source.n_rows, block.shape[1])) for block in blocks]
        for Z, block in zip(kept, blocks, strict=True):
            Z[start : start + len(block)] = block
        start += len(blocks[0])
    return kept


def kept_features(coordinates: Coordinates, source: ViewSource) -> BatchFeatures:
    """Return the features of views that are drawn once, kept in n p r numbers."""
    return features_at_hand(all_features(coordinates, source))


def features_at_hand(kept: Sequence[Tensor]) -> BatchFeatures:
    """Return the features of batches from those of all rows, one tensor of shape (n, r) a view."""

    def batch(rows: Tensor, generator: torch.Generator) -> list[Tensor]:
        return [Z.index_select(0, rows.to(Z.device)) for Z in kept]

    return batch
