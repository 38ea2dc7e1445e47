"""Helpers for figures of clusters: features and labels of a fitted model, colors of clusters, and a legend."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.exceptions import invalid_parameter
from mercer.metrics import check_matrix
from mercer.plots.style import CATEGORIES


def features_and_labels(model: Any, X: Any, labels: Any = None) -> tuple[np.ndarray, Any]:
    """Return the features of samples X from a fitted model, and the given labels or, without them, its clusters."""
    if not hasattr(model, "transform") or (labels is None and not hasattr(model, "labels_")):
        raise invalid_parameter("model", model, "a fitted clustering with transform and labels_")
    features = check_matrix("features", model.transform(X))
    if labels is None and len(model.labels_) != len(features):
        raise invalid_parameter(
            "X",
            f"{len(features)} samples",
            f"the {len(model.labels_)} samples of the fit",
            "Of others give labels, such as model.predict(X).",
        )
    return features, model.labels_ if labels is None else labels


def cluster_color(k: int) -> str:
    """Return the color of the k-th cluster."""
    return CATEGORIES[k % len(CATEGORIES)]


def legend_columns(names: Sequence[str], width: float) -> int:
    """Return how many names of a legend fit on one line of `width` inches."""
    # About 12 characters of a legend fit on one inch, and a patch with its margins takes half an inch.
    return max(1, int(width / (0.5 + max(map(len, names)) / 12)))


def legend_lines(names: Sequence[str], width: float) -> int:
    """Return the number of lines of a legend; 0, for no legend, if there are more names than colors."""
    return math.ceil(len(names) / legend_columns(names, width)) if len(names) <= len(CATEGORIES) else 0


def add_cluster_legend(figure: Any, names: Sequence[str]) -> None:
    """Write a legend with the color of each cluster at the bottom of a figure, if there are enough colors."""
    from matplotlib.patches import Patch

    width = figure.get_figwidth()
    if legend_lines(names, width):
        handles = [Patch(color=cluster_color(k), label=name) for k, name in enumerate(names)]
        figure.legend(
            handles=handles, loc="outside lower center", ncols=legend_columns(names, width), fontsize=8, frameon=False
        )
