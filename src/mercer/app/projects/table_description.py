"""Describe the settings that a model of a table has chosen and the metric that it has learned."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.kernels import SHORTHANDS
from mercer.mahalanobis import Mahalanobis
from mercer.tables import TabularModel

# At most three combinations are described, each with at least this share of the metric; and of each at most five
# columns with at least this weight.
MOST_COMBINATIONS, SMALLEST_SHARE, MOST_TERMS, SMALLEST_WEIGHT = 3, 0.05, 5, 0.1

_NAMES_OF_KERNELS = {kind: name for name, kind in SHORTHANDS.items()}


def describe_settings(model: TabularModel, n_rows: int) -> dict[str, Any]:
    """Return the settings that were chosen in a fit on `n_rows` rows, as strings and numbers by name."""
    fitted = model.estimator_
    kernel = fitted.kernel_
    settings: dict[str, Any] = {
        "estimator": type(fitted).__name__,
        "kernel": _NAMES_OF_KERNELS.get(type(kernel), type(kernel).__name__),
    }
    bandwidth = getattr(kernel, "bandwidth", None)
    if bandwidth is not None:
        settings["bandwidth"] = float(bandwidth)
    if isinstance(getattr(fitted, "metric_", None), Mahalanobis):
        settings["metric"] = fitted.metric_.kind
    if hasattr(fitted, "columns_"):
        settings["warped columns"] = _warped(list(model.encoder_.get_feature_names_out()), fitted.columns_.warps_)
    settings["ridge"] = float(fitted.ridge_)
    if hasattr(fitted, "noise_"):
        settings["noise (standard deviation)"] = math.sqrt(fitted.noise_)
    if hasattr(fitted, "ratios_"):
        settings["discriminants"] = len(fitted.ratios_)
    if hasattr(fitted, "machines_"):
        settings["models averaged"] = len(fitted.machines_)
    n_kept = len(fitted.row_index_) if hasattr(fitted, "row_index_") else len(fitted.basis_)
    settings["landmarks"] = f"{n_kept} of {n_rows} rows"
    return settings


def describe_combinations(model: TabularModel) -> list[dict[str, Any]]:
    """Return the leading directions of a full metric: the share of each, and its terms as (encoded column, weight).

    Weights are for standardized columns. The list is empty if the metric is diagonal or if none was learned.
    """
    metric = getattr(model.estimator_, "metric_", None)
    if not isinstance(metric, Mahalanobis) or metric.kind != "full":
        return []
    names = list(model.encoder_.get_feature_names_out())
    rows, shares = metric.directions(MOST_COMBINATIONS)
    return [
        {"share": float(share), "terms": _terms(names, row)}
        for row, share in zip(rows, shares, strict=True)
        if share >= SMALLEST_SHARE
    ]


def describe_importances(model: TabularModel) -> dict[str, float]:
    """Return the importance of each column of the table, the largest first; empty if the model has none."""
    if not hasattr(model.estimator_, "feature_importances_"):
        return {}
    return {str(name): float(share) for name, share in model.importances_.items()}


def _terms(names: Sequence[str], direction: np.ndarray) -> list[tuple[str, float]]:
    top = np.argsort(-np.abs(direction), kind="stable")[:MOST_TERMS]
    return [(str(names[i]), float(direction[i])) for i in top if abs(direction[i]) >= SMALLEST_WEIGHT]


def _warped(names: Sequence[str], warps: Sequence[str]) -> str:
    groups: dict[str, list[str]] = {}
    for name, warp in zip(names, warps, strict=True):
        if warp != "none":
            groups.setdefault(warp, []).append(str(name))
    return "; ".join(f"{warp} of {', '.join(group)}" for warp, group in sorted(groups.items())) or "none"
