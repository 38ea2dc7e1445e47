"""The importance of each input to one model, as sorted bars."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.mahalanobis import Mahalanobis
from mercer.metrics import as_numbers
from mercer.plots.labels import shorten
from mercer.plots.style import CATEGORIES, axes_or_new, percent_axes, tidy


def check_importances(name: str, values: Any) -> np.ndarray:
    """Return importances of any scale, such as diag(M) or the percentages of trees, as shares that sum to 1."""
    shares = as_numbers(name, values)
    if shares.ndim != 1 or not np.all(np.isfinite(shares)) or shares.min(initial=0.0) < 0 or shares.sum() <= 0:
        raise invalid_parameter(name, values, "a vector of finite numbers, none negative and not all zero")
    return shares / shares.sum()


def check_names(feature_names: Any, n_features: int) -> list[str]:
    """Return a name for each input: the given names, or x0, x1, ..."""
    if feature_names is None:
        return [f"x{i}" for i in range(n_features)]
    names = [str(name) for name in feature_names]
    if len(names) != n_features:
        raise invalid_parameter("feature_names", feature_names, f"a sequence of {n_features} names")
    return names


def importances_of(model: Any) -> np.ndarray:
    """Return `feature_importances_` of a fitted model, or the importances by the metric of its `kernel_`."""
    if hasattr(model, "feature_importances_"):
        return np.asarray(model.feature_importances_)
    if hasattr(model, "kernel_"):
        return model.kernel_.single_metric().importances(model.n_features_in_)
    raise invalid_parameter("model", model, "a fitted model with kernel_ or feature_importances_")


class ImportancesDisplay:
    """Horizontal bars of the shares of importance, with the largest at the top.

    Parameters
    ----------
    importances : array-like of shape (d,)
        They are not negative and have any scale; their shares, which sum to 1, are drawn.
    feature_names : sequence of str, optional
        x0, x1, ... by default.
    name : str, optional
        The name of the model, for the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    def __init__(self, importances: Any, feature_names: Sequence[str] | None = None, name: str | None = None) -> None:
        self.importances = check_importances("importances", importances)
        self.feature_names = check_names(feature_names, len(self.importances))
        self.name = name

    @classmethod
    def from_estimator(
        cls, model: Any, *, feature_names: Sequence[str] | None = None, name: str | None = None, ax: Any = None
    ) -> "ImportancesDisplay":
        """Draw `feature_importances_` of a fitted model, or the importances by the metric of its `kernel_`."""
        names = getattr(model, "feature_names_in_", None) if feature_names is None else feature_names
        return cls(importances_of(model), names, type(model).__name__ if name is None else name).plot(ax=ax)

    @classmethod
    def from_metric(
        cls,
        metric: Mahalanobis,
        *,
        feature_names: Sequence[str] | None = None,
        n_features: int | None = None,
        name: str | None = None,
        ax: Any = None,
    ) -> "ImportancesDisplay":
        """Draw the diagonal of a metric; the identity needs `n_features` or `feature_names`."""
        if n_features is None and feature_names is not None:
            n_features = len(feature_names)
        return cls(metric.importances(n_features), feature_names, name).plot(ax=ax)

    def plot(self, ax: Any = None, *, max_features: int = 20) -> "ImportancesDisplay":
        """Draw onto `ax`, or onto a new figure. All inputs but the first `max_features` share one bar."""
        check_count("max_features", max_features)
        order = np.argsort(-self.importances, kind="stable")
        shares = self.importances[order[:max_features]]
        names = [shorten(self.feature_names[i]) for i in order[:max_features]]
        colors = [CATEGORIES[0]] * len(shares)
        if len(order) > max_features:
            shares = np.append(shares, self.importances[order[max_features:]].sum())
            names.append(f"the other {len(order) - max_features} together")
            colors.append("0.6")
        self.ax_ = ax = axes_or_new(ax, figsize=(5.2, 1.1 + 0.26 * len(shares)))
        self.figure_ = ax.figure
        bars = ax.barh(range(len(shares)), shares, color=colors, height=0.75)
        ax.bar_label(bars, [f"{share:.1%}" for share in shares], padding=3, fontsize=8)
        ax.set_yticks(range(len(shares)), names, fontsize=9)
        ax.set_ylim(len(shares) - 0.4, -0.6)
        # The axis leaves room for the number beside the longest bar.
        ax.set_xlim(0, 1.15 * shares.max())
        ax.locator_params(axis="x", nbins=6)
        percent_axes(ax.xaxis)
        ax.set_xlabel("share of importance")
        ax.set_title("" if self.name is None else shorten(self.name, 36), fontsize=10)
        ax.tick_params(axis="y", length=0)
        tidy(ax)
        return self
