"""A table prepared for kernel machines: distinct rows, centered targets, and warped columns."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import as_tensor
from mercer.tabular_models.column_warp import WARPS, ColumnWarp, mixed
from mercer.tabular_models.grouped_rows import GroupedRows
from mercer.tabular_models.noise import effective_weights

# A warp is fitted on at most this many rows, which determine the quantiles of a column well enough.
MOST_WARP_ROWS = 20_000


class Repeats(NamedTuple):
    """The information on the noise from rows with several targets.

    Attributes
    ----------
    further : int
        The number of measurements beyond the first of each distinct row.
    scatter : tensor of shape (c,)
        The weighted sum of the squared differences of targets from the mean of their row. It is divided by 1 - gamma,
        where gamma is the part of the noise that identical rows share, so that it refers to the noise of one target.
    """

    further: int
    scatter: Tensor


class Table:
    """Distinct rows with their targets, weights and warped columns.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Distinct rows; None for a part of a table, which `take` returns.
    y : tensor of shape (n, c)
        The centered targets; the mean target of identical rows.
    weights : tensor of shape (n,) or None
        The weights, for which ridge / weight is the noise of the target of a row (`noise.effective_weights`). None if
        all are 1.
    center : ndarray of shape (c,)
        The mean that was subtracted from the targets.
    repeats : Repeats or None
    trend : tensor of shape (n, c) or None
        The values that were subtracted from the targets in addition to their center.
    whole : Table, optional
        The table that this one is a part of. Warps are fitted to it.
    standardize : bool
        Whether warps standardize the columns.
    device : str, torch.device or None
    """

    def __init__(
        self,
        X: np.ndarray | None,
        y: Tensor,
        weights: Tensor | None,
        center: np.ndarray,
        *,
        repeats: Repeats | None = None,
        trend: Tensor | None = None,
        whole: "Table | None" = None,
        standardize: bool = True,
        device: Any = None,
    ) -> None:
        self._X, self.y, self.weights, self.center, self.repeats = X, y, weights, center, repeats
        self.standardize, self.device = standardize, device
        self._trend, self._whole = trend, whole
        self._taken: tuple[Table, Tensor] | None = None
        self._fitted: dict[Any, ColumnWarp] = {}
        self._warped: dict[Any, Tensor] = {}

    @classmethod
    def from_rows(
        cls,
        rows: GroupedRows,
        *,
        scatter: np.ndarray,
        further: int,
        shared_noise: float,
        standardize: bool,
        device: Any,
    ) -> "Table":
        """Return the table of collapsed rows; for `scatter` and `further` see `Repeats`."""
        center = np.average(rows.y, axis=0, weights=rows.weights)
        y = as_tensor(rows.y - center, dtype=torch.float64, device=device)
        weights = None if rows.are_plain else as_tensor(rows.weights, dtype=torch.float64, device=device)
        repeats = Repeats(further, as_tensor(scatter / (1.0 - shared_noise)).to(y)) if further else None
        return cls(
            rows.X,
            y,
            effective_weights(weights, shared_noise),
            center,
            repeats=repeats,
            standardize=standardize,
            device=device,
        )

    def __len__(self) -> int:
        return len(self.y)

    @property
    def X(self) -> np.ndarray:
        """The rows before any warp, of shape (n, d); the rows of a part of a table are copied when first used."""
        if self._X is None:
            source, rows = cast("tuple[Table, Tensor]", self._taken)
            self._X = source.X[rows.cpu().numpy()]
        return self._X

    @property
    def n_columns(self) -> int:
        """The number d of columns."""
        return self.X.shape[1] if self._taken is None else self._taken[0].n_columns

    @property
    def mass(self) -> Tensor:
        """The weights of the rows, also if all are 1."""
        return torch.ones_like(self.y[:, 0]) if self.weights is None else self.weights

    @property
    def has_trend(self) -> bool:
        """Whether a trend was subtracted from the targets in addition to their center."""
        return self._trend is not None

    @property
    def trend(self) -> Tensor:
        """The trend that was subtracted from the targets in addition to their center, or zeros."""
        return torch.zeros_like(self.y) if self._trend is None else self._trend

    def columns(self, warp: str | Sequence[str]) -> ColumnWarp:
        """Return the warp with this name for all columns, or with these names, fitted to the whole table."""
        if self._whole is not None:
            return self._whole.columns(warp)
        key = warp if isinstance(warp, str) else tuple(warp)
        if key not in self._fitted and isinstance(key, tuple) and len(key) == self.n_columns and set(key) <= set(WARPS):
            self._fitted[key] = mixed(key, {name: self.columns(name) for name in set(key)})
        if key not in self._fitted:
            step = -(-len(self.X) // MOST_WARP_ROWS)
            mass = self.mass.cpu().numpy()[::step]
            self._fitted[key] = ColumnWarp(warp, standardize=self.standardize).fit(self.X[::step], sample_weight=mass)
        return self._fitted[key]

    def warped(self, warp: str | Sequence[str]) -> Tensor:
        """Return the warped columns as a tensor of shape (n, d)."""
        key = warp if isinstance(warp, str) else tuple(warp)
        if key not in self._warped:
            source, rows = self._taken if self._taken is not None else (None, None)
            if source is not None and key in source._warped:
                self._warped[key] = source._warped[key][rows].to(self.y.dtype)
            else:
                transformed = self.columns(warp).transform(self.X.astype(np.float64, copy=False))
                self._warped[key] = as_tensor(transformed, dtype=self.y.dtype, device=self.device)
        return self._warped[key]

    def take(self, index: np.ndarray) -> "Table":
        """Return the rows with these indices as a table with the same warps.

        It gets a part of the repeats, in proportion to its number of rows.
        """
        rows = torch.from_numpy(index).to(self.y.device)
        repeats = None
        if self.repeats is not None:
            part = len(index) / len(self)
            further = round(part * self.repeats.further)
            scatter = self.repeats.scatter * (further / self.repeats.further)
            repeats = Repeats(further, scatter) if further else None
        taken = Table(
            None,
            self.y[rows],
            None if self.weights is None else self.weights[rows],
            self.center,
            repeats=repeats,
            trend=None if self._trend is None else self._trend[rows],
            whole=self if self._whole is None else self._whole,
            standardize=self.standardize,
            device=self.device,
        )
        # Rows and warped columns are only copied when they are used, since each copy may be as large as the table.
        taken._taken = (self, rows)
        return taken

    def in_single_precision(self) -> "Table":
        """Return the same rows in float32, for which products take half the time if seven digits are enough."""
        single = self.take(np.arange(len(self)))
        single.y = self.y.to(torch.float32)
        single.weights = None if self.weights is None else self.weights.to(torch.float32)
        return single

    def without(self, values: Tensor) -> "Table":
        """Return the same rows with the values of a trend, of shape (n, c), subtracted from the targets."""
        rest = Table(
            self.X,
            self.y - values,
            self.weights,
            self.center,
            repeats=self.repeats,
            trend=self.trend + values,
            whole=self._whole,
            standardize=self.standardize,
            device=self.device,
        )
        rest._fitted, rest._warped = self._fitted, self._warped
        return rest
