"""Scores of classes: how well probabilities rank the rows, and the recall of each class."""

from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score


def ranking_scores(
    y: np.ndarray, probabilities: np.ndarray, classes: np.ndarray, weights: np.ndarray | None = None
) -> dict[str, float | None]:
    """Return the area under the ROC curve and the average precision, averaged over the classes if there are several.

    Of two classes, the scores are those of the rarer one. A class that no row or every row has is left out, and the
    scores are None if no class remains.

    Parameters
    ----------
    y : ndarray of shape (n,)
    probabilities : ndarray of shape (n, n_classes)
    classes : ndarray of shape (n_classes,)
    weights : ndarray of shape (n,) or None, default=None
        How much each row counts. None gives all rows the same weight.
    """
    if weights is not None:
        y, probabilities, weights = y[weights > 0], probabilities[weights > 0], weights[weights > 0]
    found = [k for k, label in enumerate(classes) if 0 < np.sum(y == label) < len(y)]
    if len(classes) == 2 and found:
        found = [min(found, key=lambda k: np.sum(y == classes[k]))]
    if not found:
        return {"auc": None, "average_precision": None}
    areas = [roc_auc_score(y == classes[k], probabilities[:, k], sample_weight=weights) for k in found]
    precisions = [average_precision_score(y == classes[k], probabilities[:, k], sample_weight=weights) for k in found]
    return {"auc": float(np.mean(areas)), "average_precision": float(np.mean(precisions))}


def recall_by_class(y: np.ndarray, predicted: np.ndarray) -> list[dict[str, Any]]:
    """Return for each class of y how many rows have it, and the share of these that was predicted correctly."""
    return [
        {"class": str(label), "rows": int(np.sum(y == label)), "recall": float(np.mean(predicted[y == label] == label))}
        for label in np.unique(y)
    ]
