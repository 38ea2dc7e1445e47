"""A table made ready for kernels: distinct rows, centred targets, and its columns under each warp."""

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.blocks import as_tensor
from mercer.tabular_models.column_warp import ColumnWarp
from mercer.tabular_models.grouped_rows import GroupedRows

# What is believed before rows repeat: that noise is an error of measurement, as if so many repeats had shown it.
PRIOR_REPEATS = 5.0


class Observations(NamedTuple):
    """Every row of the table as it came: its target (centred), which of the distinct rows it is, and its weight."""

    y: np.ndarray
    group: np.ndarray
    weights: np.ndarray


class Repeats(NamedTuple):
    """What rows measured more than once say of the noise.

    A row that comes again with the same target is a copy, and counts as a weight: under noise, equal targets have no
    chance. A row that comes again with another target is a measurement.

    Attributes
    ----------
    further : int
        Measurements beyond the first of each distinct row.
    scatter : tensor of shape (c,)
        The weighted sum of their squared differences from the mean of their row.
    """

    further: int
    scatter: Tensor


class Table:
    """Distinct rows with their targets, weights and warped columns.

    Parameters
    ----------
    rows : GroupedRows
        Targets of shape (n, c).
    standardize : bool
    dtype : torch.dtype
    device : str, torch.device or None
    center : ndarray of shape (c,), optional
        What is taken from the targets; their weighted mean by default.
    observations : Observations, optional
        Every row as it came; the distinct rows themselves by default.
    warps : dict, optional
        Fitted `ColumnWarp`s by name, shared between a table and its samples.
    index : ndarray of shape (n,), optional

    Attributes
    ----------
    X : ndarray of shape (n, d)
    y : tensor of shape (n, c)
        Centred.
    weights : tensor of shape (n,) or None
        None where all are 1.
    index : ndarray of shape (n,)
        Which rows of the whole table these are.
    """

    def __init__(
        self,
        rows: GroupedRows,
        *,
        standardize: bool,
        dtype: torch.dtype,
        device: Any = None,
        center: np.ndarray | None = None,
        observations: Observations | None = None,
        warps: dict[Any, ColumnWarp] | None = None,
        index: np.ndarray | None = None,
    ) -> None:
        self.rows, self.X = rows, rows.X
        self.standardize, self.dtype, self.device = standardize, dtype, device
        self.center = np.average(rows.y, axis=0, weights=rows.weights) if center is None else center
        self.y = as_tensor(rows.y - self.center, dtype=dtype, device=device)
        self.weights = None if rows.are_plain else as_tensor(rows.weights, dtype=dtype, device=device)
        alone = Observations(rows.y - self.center, np.arange(len(rows.X)), rows.weights)
        self.observations = alone if observations is None else observations
        self.index = np.arange(len(rows.X)) if index is None else index
        self._fitted = {} if warps is None else warps
        self._warped: dict[Any, Tensor] = {}

    def __len__(self) -> int:
        return len(self.X)

    def columns(self, warp: str | Sequence[str]) -> ColumnWarp:
        """Return the fitted warp of that name, or of those names."""
        key = warp if isinstance(warp, str) else tuple(warp)
        if key not in self._fitted:
            self._fitted[key] = ColumnWarp(warp, standardize=self.standardize).fit(
                self.X, sample_weight=self.rows.weights
            )
        return self._fitted[key]

    def warped(self, warp: str | Sequence[str]) -> Tensor:
        """Return the columns under a warp, as a tensor."""
        key = warp if isinstance(warp, str) else tuple(warp)
        if key not in self._warped:
            self._warped[key] = as_tensor(
                self.columns(warp).transform(self.X.astype(np.float64, copy=False)),
                dtype=self.dtype,
                device=self.device,
            )
        return self._warped[key]

    @cached_property
    def repeats(self) -> Repeats | None:
        """What rows measured more than once say of the noise; None if there are none."""
        y, group, weights = self.observations
        if len(y) == len(self):
            return None
        measured = np.unique(np.column_stack([group, y]), axis=0)
        count = len(measured) - len(self)
        apart = y - (self.rows.y - self.center)[group]
        scatter = as_tensor(weights @ apart**2, dtype=self.dtype, device=self.device)
        return Repeats(count, scatter) if count else None

    def shared_noise(self, noise: np.ndarray) -> float:
        """Return which share of the noise, of variance `noise` an output, identical rows have in common.

        Noise is what a function of the columns cannot explain. If a row that comes again has its old target again, that
        is not an error of measurement, and a further copy of it will have it too. The variance of the measurement is
        the scatter of repeated rows (a row of weight 2 is a row that came twice), and of `PRIOR_REPEATS` more that
        scatter as the noise does, so that a few repeats prove nothing.
        """
        y, group, weights = self.observations
        count = float(weights.sum()) - len(self)
        if count <= 0 or not np.all(noise > 0):
            return 0.0
        apart = y - (self.rows.y - self.center)[group]
        scatter = float(np.mean(weights @ apart**2 / noise))
        return max(0.0, 1.0 - (scatter + PRIOR_REPEATS) / (count + PRIOR_REPEATS))

    def sample(self, n_rows: int, random: np.random.RandomState) -> "Table":
        """Return a table of at most `n_rows` of the rows, drawn at random, under the same warps."""
        if len(self) <= n_rows:
            return self
        drawn = np.sort(random.choice(len(self), n_rows, replace=False))
        part = GroupedRows(self.X[drawn], self.rows.y[drawn], self.rows.weights[drawn], np.arange(len(drawn)))
        place = np.full(len(self), -1)
        place[drawn] = np.arange(len(drawn))
        seen = place[self.observations.group] >= 0
        y, group, weights = (part_of[seen] for part_of in self.observations)
        return Table(
            part,
            standardize=self.standardize,
            dtype=self.dtype,
            device=self.device,
            center=self.center,
            observations=Observations(y, place[group], weights),
            warps=self._fitted,
            index=self.index[drawn],
        )


class Clock:
    """A time limit in seconds, None for none; knows whether it cut anything short."""

    def __init__(self, limit: float | None) -> None:
        self.end = None if limit is None else time.monotonic() + limit
        self.bit = False

    def is_over(self) -> bool:
        """Whether the time is up; remembered as having cut something short."""
        over = self.end is not None and time.monotonic() >= self.end
        self.bit = self.bit or over
        return over
