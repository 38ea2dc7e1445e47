"""What RFMs and Gaussian processes on tables share: parameters, preparation, what is published after a fit."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from mercer.checks import check_bandwidth, check_choice, check_count, check_flag, check_number
from mercer.exceptions import ConvergenceWarning, DataWarning, invalid_parameter
from mercer.kernels import Kernel, check_kernel
from mercer.landmarks import METHODS
from mercer.mahalanobis import check_metric
from mercer.tabular_models.column_warp import WARPS
from mercer.tabular_models.component import Component
from mercer.tabular_models.grouped_rows import collapse
from mercer.tabular_models.search import Recipe, distinct_warps, recipes
from mercer.tabular_models.table import Clock, Observations, Table

RADIAL_KERNELS = ("gaussian", "matern52", "matern32", "laplace")
PRODUCT_KERNELS = ("product_matern32", "product_laplace")
# Up to this many distinct rows each one is a centre; beyond, landmarks are, this many of them.
MOST_EXACT_ROWS, AUTO_LANDMARKS = 10_000, 2000


class TableModel(BaseEstimator):
    """The common part; see `RFMRegressor` and `GPRegressor` for the parameters."""

    kernel: Any
    metric: str
    warp: Any
    bandwidth: Any
    standardize: bool
    n_iter: int
    n_landmarks: Any
    landmarks: str
    time_limit: float | None
    working_memory: float
    device: Any
    components_: list[Component]

    # ---- before the fit ---------------------------------------------------------------------------------------

    def _table(self, X: Any, y: Any, sample_weight: Any) -> Table:
        """Return the distinct rows of validated input with centred targets, and remember the shape of y."""
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.sum() > 0:
            raise invalid_parameter("sample_weight", sample_weight, "weights with a sum above 0")
        columns = y.reshape(len(y), -1).astype(np.float64)
        rows = collapse(X, columns, weights)
        center = np.average(rows.y, axis=0, weights=rows.weights)
        used = rows.group >= 0
        observations = Observations(columns[used] - center, rows.group[used], weights[used])
        if (rows.X[0] == rows.X).all():
            warnings.warn(
                f"all {len(X)} rows of X are equal: there is nothing to learn from them, and the mean of y is "
                "predicted everywhere.",
                DataWarning,
                stacklevel=3,
            )
        return Table(
            rows,
            standardize=self.standardize,
            dtype=torch.float64,
            device=self.device,
            center=center,
            observations=observations,
        )

    def _check_common(self, metrics: Sequence[str]) -> None:
        check_choice("metric", self.metric, ("auto", *metrics))
        check_count("n_iter", self.n_iter, at_least=0)
        check_choice("landmarks", self.landmarks, METHODS)
        check_number("working_memory", self.working_memory, above=0.0)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, above=0.0)
        if not (self.n_landmarks is None or self.n_landmarks == "auto"):
            check_count("n_landmarks", self.n_landmarks)
        check_flag("standardize", self.standardize)
        check_bandwidth(self.bandwidth)

    def _recipes(self, table: Table, auto_metrics: dict[str, Sequence[str]]) -> list[Recipe]:
        """Return what is to be tried; `auto_metrics` says which metrics suit "radial" and "product" kernels."""
        warps = distinct_warps(table, WARPS) if isinstance(self.warp, str) and self.warp == "auto" else [self._warp()]
        for warp in warps:
            table.columns(warp)  # an unknown warp is named before anything is fitted
        given = not (isinstance(self.kernel, str) and self.kernel == "auto")
        made = []
        for group, names in (("radial", RADIAL_KERNELS), ("product", PRODUCT_KERNELS)):
            kernels = [self._own(self.kernel)] if given else [self._own(name) for name in names]
            metrics = [self.metric] if self.metric != "auto" else auto_metrics[group]
            if self.metric == "auto" and not kernels[0].has_closed_form_gradient:
                metrics = [metric for metric in metrics if metric != "ard"]
            made += recipes(kernels, warps, metrics)
            if given:
                break
        if given and self.metric != "auto" and self.metric != "identity":
            check_metric(made[0].kernel.single_metric())
        return made

    def _warp(self) -> Any:
        return self.warp if isinstance(self.warp, str) else tuple(self.warp)

    def _own(self, kernel: Any) -> Kernel:
        """Return the kernel with the bandwidth that was asked for; the search begins at the median."""
        return check_kernel(kernel, "median" if self.bandwidth == "auto" else self.bandwidth)

    def _number_of_landmarks(self, table: Table) -> int | None:
        """Return how many landmarks to use, or None to use every row."""
        if self.n_landmarks == "auto":
            return None if len(table) <= MOST_EXACT_ROWS else AUTO_LANDMARKS
        if self.n_landmarks is None or self.n_landmarks >= len(table):
            return None
        return int(self.n_landmarks)

    def _warn_if_cut_short(self, clock: Clock) -> None:
        if clock.bit:
            warnings.warn(
                f"time_limit={self.time_limit} s was reached before all choices were tried: the best so far is kept. "
                "A larger time_limit, or a fixed kernel, warp or metric, lets the search end.",
                ConvergenceWarning,
                stacklevel=3,
            )

    # ---- after the fit ----------------------------------------------------------------------------------------

    def _publish(self, components: list[Component], basis_index: list[np.ndarray], table: Table) -> None:
        """Set the attributes that say what was learned; those of one kernel are of the component that counts most.

        `basis_index` says which rows of the table the centres of each component are.
        """
        self.components_ = components
        group = table.rows.group
        first = np.full(len(table), len(group))
        np.minimum.at(first, group[group >= 0], np.flatnonzero(group >= 0))
        centres = np.unique(np.concatenate(basis_index))
        self.row_index_ = first[centres]
        self.basis_index_ = [np.searchsorted(centres, index) for index in basis_index]
        leader = max(components, key=lambda component: component.weight)
        self.kernel_, self.columns_, self.ridge_ = leader.kernel, leader.columns, leader.ridge
        self.metric_ = leader.kernel.common_metric()
        self.center_ = table.center
        self.feature_importances_ = np.sum([c.weight * c.importances() for c in components], axis=0)
        metric = check_metric(self.metric_)
        self.directions_, self.direction_shares_ = metric.directions(n_features=table.X.shape[1])

    def _mean(self, X: np.ndarray) -> np.ndarray:
        """Return the average of the components' values, of shape (n, c)."""
        total = np.zeros((len(X), len(self.center_))) + self.center_
        for component in self.components_:
            total += component.weight * component.mean(X, self.working_memory, self.device)
        return total

    def _validated(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)

    def gradients(self, X: Any) -> np.ndarray:
        """Return how the prediction moves with each column, in the units of the columns, at each row.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, d), or (n, c, d) for c targets or classes
        """
        X = self._validated(X)
        total = np.sum([c.weight * c.gradients(X, self.working_memory) for c in self.components_], axis=0)
        return total[:, 0] if self._is_single_output() else total

    def contributions(self, X: Any) -> np.ndarray:
        """Return what each training row (or landmark) adds to the prediction beside the mean, at each row of X.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, m), or (n, m, c) for c targets or classes
            Column j belongs to the row `row_index_[j]` of the training table.
        """
        X = self._validated(X)
        total = np.zeros((len(X), len(self.row_index_), len(self.center_)))
        for component, rows in zip(self.components_, self.basis_index_, strict=True):
            total[:, rows] += component.weight * component.contributions(X)
        return total[:, :, 0] if self._is_single_output() else total

    def _is_single_output(self) -> bool:
        return len(self.center_) == 1


# The metrics that "auto" tries; t = 0 of a recursion is the identity. A product over columns has a meaning for the
# columns as they are: turned by a full metric it would not.
AUTO_METRICS: dict[str, Sequence[str]] = {"radial": ("full", "diagonal"), "product": ("diagonal",)}
AUTO_METRICS_OF_PROCESSES: dict[str, Sequence[str]] = {"radial": ("full", "ard"), "product": ("diagonal", "ard")}
