"""What comes before and after a backbone: rows brought to a common scale, and a head onto the unit sphere."""

from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor, nn

from mercer.blocks import as_tensor
from mercer.linalg import in_row_span
from mercer.losses.directions import unit
from mercer.training.randomness import global_chance_from

CPU = torch.device("cpu")
# Beyond so many columns, if rows are fewer, networks see rows in their span: a layer of so many columns would take most
# of the time and of the memory, to learn weights that no row has a say in.
MOST_COLUMNS = 2000


class Entrance(NamedTuple):
    """What rows go through before a network sees them: x becomes (x - center) / scale, and this times the span.

    Attributes
    ----------
    center, scale : ndarrays of shape (D,)
    span : ndarray of shape (D, r) or None
        None leaves the columns as they are.
    """

    center: np.ndarray
    scale: np.ndarray
    span: np.ndarray | None = None

    @classmethod
    def learned(cls, X: np.ndarray, shape: tuple[int, ...], by_column: bool, backbone: Any) -> "Entrance":
        """Return the entrance for rows of samples of that shape; see `standardization`.

        A user's network and those of images want samples as they are; others see few rows of many columns in
        coordinates of their span, in which nothing of the rows is lost. Of other rows, the part in the span is seen.
        """
        center, scale = standardization(X, shape, by_column)
        n, d = X.shape
        if not (n < d and d > MOST_COLUMNS and (backbone is None or backbone == "mlp")):
            return cls(center, scale)
        # The mean of rows is in their span, so that centered rows are.
        _, V = in_row_span(as_tensor(X / scale))
        # The entries have a mean square of 1, as those of standardized columns do: what initial weights are made for.
        return cls(center, scale, (V * (V.shape[1] / d) ** 0.5).numpy().astype(X.dtype))

    @classmethod
    def of_weights(cls, weights: dict[str, np.ndarray]) -> "Entrance":
        """Return the entrance of a network with those weights."""
        return cls(weights["center"], weights["scale"], weights.get("span"))

    def shape_seen(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape that samples of some shape have once they are in."""
        return shape if self.span is None else (self.span.shape[1],)


class FeatureNetwork(nn.Module):
    """Rows -> features z on the unit sphere of R^d: rows are standardized, go through a backbone, and through a head.

    Parameters
    ----------
    backbone : nn.Module
        Standardized flat rows -> (n, p).
    width : int
        p.
    n_components : int
        d.
    hidden : int
        The width of the head, an affine map, a ReLU and an affine map.
    entrance : Entrance
        What rows go through first.
    seed : int
        Draws the weights of the head.
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
        """Set the mode; in training those parts of the backbone that came in evaluation mode stay in it."""
        super().train(mode)
        for module in self.backbone.modules():
            module.training = mode and module in self._in_training
        return self

    def represent(self, x: Tensor) -> Tensor:
        """Return what the heads see, of shape (n, p)."""
        return self.backbone(self._in_span((x - self.center) / self.scale))

    def _in_span(self, rows: Tensor) -> Tensor:
        return rows if self.span is None else rows @ self.span

    def features(self, x: Tensor) -> Tensor:
        """Return z of rows, of shape (n, d)."""
        return unit(self.feature_head(self.represent(x)), dim=1)


def standardization(X: np.ndarray, shape: tuple[int, ...], by_column: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return what rows are centered and scaled by, each of shape (D,).

    Parameters
    ----------
    X : ndarray of shape (n, D)
    shape : tuple of int
        Of one sample.
    by_column : bool, default=True
        Whether each column, or each channel of images over all pixels, has a deviation of its own; else all have one,
        the root of their mean variance, so that large ones stay large.
    """
    n_kinds = X.shape[1] if len(shape) == 1 else shape[2] if len(shape) == 3 else 1
    values = X.reshape(-1, n_kinds)
    center, scale = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
    # A column that is constant up to rounding says nothing, and must not be blown up.
    scale[scale <= 10 * np.finfo(X.dtype).eps * np.abs(center)] = 0.0
    if not by_column:
        scale[:] = np.sqrt(np.mean(scale**2))
    repeats = X.shape[1] // n_kinds
    parts = center, np.where(scale > 0, scale, 1.0)
    return np.tile(parts[0], repeats).astype(X.dtype), np.tile(parts[1], repeats).astype(X.dtype)
