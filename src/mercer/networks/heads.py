"""What comes before and after a backbone: rows brought to a common scale, and a head onto the unit sphere."""

from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from mercer.losses.directions import unit
from mercer.training.randomness import global_chance_from

CPU = torch.device("cpu")


class FeatureNetwork(nn.Module):
    """Rows -> features z on the unit sphere of R^d: rows are standardised, go through a backbone, and through a head.

    Parameters
    ----------
    backbone : nn.Module
        Standardised flat rows -> (n, p).
    width : int
        p.
    n_components : int
        d.
    hidden : int
        The width of the head, an affine map, a ReLU and an affine map.
    center, scale : ndarrays of shape (D,)
        Rows are standardised by them.
    seed : int
        Draws the weights of the head.
    """

    center: Tensor
    scale: Tensor

    def __init__(
        self,
        backbone: nn.Module,
        width: int,
        n_components: int,
        hidden: int,
        center: np.ndarray,
        scale: np.ndarray,
        seed: int,
    ) -> None:
        super().__init__()
        self.register_buffer("center", torch.tensor(center))
        self.register_buffer("scale", torch.tensor(scale))
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
        return self.backbone((x - self.center) / self.scale)

    def features(self, x: Tensor) -> Tensor:
        """Return z of rows, of shape (n, d)."""
        return unit(self.feature_head(self.represent(x)), dim=1)


def standardisation(X: np.ndarray, shape: tuple[int, ...], by_column: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return what rows are centred and scaled by, each of shape (D,).

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
