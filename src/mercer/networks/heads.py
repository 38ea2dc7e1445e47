"""What surrounds a backbone: the standardization of its input rows, and a head whose features have length 1."""

from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from mercer.blocks import as_tensor
from mercer.linalg import in_row_span
from mercer.losses.directions import unit
from mercer.training.randomness import global_chance_from

CPU = torch.device("cpu")
# If there are more columns than this, and fewer rows than columns, networks get the rows in coordinates of their span.
# A layer of so many columns would take most of the time and memory, mostly for weights that no row determines.
MOST_COLUMNS = 2000


class Entrance(NamedTuple):
    """The map of rows before they enter a network: x becomes (x - center) / scale, multiplied by `span`.

    Attributes
    ----------
    center, scale : ndarrays of shape (D,)
    span : ndarray of shape (D, r) or None
        A matrix that maps rows to coordinates of their span. With None the columns are not combined.
    """

    center: np.ndarray
    scale: np.ndarray
    span: np.ndarray | None = None

    @classmethod
    def learned(cls, X: np.ndarray, shape: tuple[int, ...], by_column: bool, backbone: Any) -> "Entrance":
        """Return the entrance for rows of samples of the given shape; see `standardization`.

        A user's network and networks of images need all columns. Other networks get few rows of many columns in
        coordinates of the rows' span, which loses nothing of these rows. Of new rows, only the part in the span is
        used.
        """
        center, scale = standardization(X, shape, by_column)
        n, d = X.shape
        if not (n < d and d > MOST_COLUMNS and (backbone is None or backbone == "mlp")):
            return cls(center, scale)
        # The mean of the rows is in their span, so the centered rows are too.
        _, V = in_row_span(as_tensor(X / scale))
        # The coordinates are scaled to a mean square of 1, like standardized columns, as initial weights assume.
        return cls(center, scale, (V * (V.shape[1] / d) ** 0.5).numpy().astype(X.dtype))

    @classmethod
    def of_weights(cls, weights: dict[str, np.ndarray]) -> "Entrance":
        """Return the entrance that is stored in the weights of a network."""
        return cls(weights["center"], weights["scale"], weights.get("span"))

    def shape_seen(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape in which samples of the given shape enter the network."""
        return shape if self.span is None else (self.span.shape[1],)


class FeatureNetwork(nn.Module):
    """A network that maps rows to features z of length 1: standardization, then a backbone, then a head.

    Parameters
    ----------
    backbone : nn.Module
        A network of standardized flat rows, (n, D) -> (n, p).
    width : int
        p, the number of features of the backbone.
    n_components : int
        d, the number of components of z.
    hidden : int
        The width of the head, which is an affine map, a ReLU and an affine map.
    entrance : Entrance
        The standardization of rows.
    seed : int
        The seed of the initial weights of the head.
    """

    center: Tensor
    scale: Tensor
    span: Tensor | None

    def __init__(
        self,
        backbone: nn.Module,
        width: int,
        n_components: int,
        hidden: int,
        entrance: Entrance,
        seed: int,
    ) -> None:
        super().__init__()
        self.register_buffer("center", torch.tensor(entrance.center))
        self.register_buffer("scale", torch.tensor(entrance.scale))
        self.register_buffer("span", None if entrance.span is None else torch.tensor(entrance.span))
        self.backbone = backbone
        self._in_training = {module for module in backbone.modules() if module.training}
        self.n_components = n_components
        with global_chance_from(seed, CPU):
            self.feature_head = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, n_components))

    def train(self, mode: bool = True) -> Self:
        """Set the mode. Parts of the backbone that were given in evaluation mode stay in it during training."""
        super().train(mode)
        for module in self.backbone.modules():
            module.training = mode and module in self._in_training
        return self

    def represent(self, x: Tensor) -> Tensor:
        """Return the features of the backbone, which are the input of the heads, of shape (n, p)."""
        return self.backbone(self._in_span((x - self.center) / self.scale))

    def _in_span(self, rows: Tensor) -> Tensor:
        return rows if self.span is None else rows @ self.span

    def features(self, x: Tensor) -> Tensor:
        """Return the features z of rows, of shape (n, d)."""
        return unit(self.feature_head(self.represent(x)), dim=1)


def standardization(X: np.ndarray, shape: tuple[int, ...], by_column: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return the centers and the scales by which rows are standardized, each of shape (D,).

    Parameters
    ----------
    X : ndarray of shape (n, D)
    shape : tuple of int
        The shape of one sample.
    by_column : bool, default=True
        Whether each column (for images: each channel over all pixels) is divided by its own standard deviation.
        Otherwise all are divided by the same number, the square root of their mean variance, so that columns with large
        values keep larger values than others.
    """
    n_kinds = X.shape[1] if len(shape) == 1 else shape[2] if len(shape) == 3 else 1
    values = X.reshape(-1, n_kinds)
    center, scale = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
    # A column that is constant up to rounding carries no information; its rounding errors must not be enlarged.
    scale[scale <= 10 * np.finfo(X.dtype).eps * np.abs(center)] = 0.0
    if not by_column:
        scale[:] = np.sqrt(np.mean(scale**2))
    repeats = X.shape[1] // n_kinds
    parts = center, np.where(scale > 0, scale, 1.0)
    return np.tile(parts[0], repeats).astype(X.dtype), np.tile(parts[1], repeats).astype(X.dtype)
