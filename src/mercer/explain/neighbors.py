"""The rows nearest to a row, under the metric that a model has learned or in the coordinates that it gives."""

from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.mahalanobis import check_metric
from mercer.tables import TabularModel
from mercer.tabular_models.table_model import TableModel


class Neighbors(NamedTuple):
    """The rows nearest to a row.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,)
        Positions in X, the nearest first.
    distances : ndarray of shape (n_rows,)
        The distances of these rows, as the model measures them.
    plain : ndarray of shape (n_rows,)
        The ranks of these rows, counted from 0, by the Euclidean distance between standardized columns. Differences
        between the two orders show what the model has learned.
    """

    rows: np.ndarray
    distances: np.ndarray
    plain: np.ndarray


def seen_by(model: Any, X: Any) -> np.ndarray | None:
    """Return coordinates, of shape (n, r), in which the Euclidean distance of two rows is that of the model.

    For models of tables, these are the warped columns times the square root of the learned metric. For other models,
    such as embeddings and discriminants, they are what `transform` returns. None for models that have neither.

    Parameters
    ----------
    model : fitted estimator
        Also within `mercer.tabular` or at the end of a pipeline.
    X : data frame, array-like of shape (n, d), or images
    """
    if isinstance(model, TabularModel):
        check_is_fitted(model)
        return seen_by(model.estimator_, model.encoder_.transform(X))
    if isinstance(model, Pipeline):
        return seen_by(model[-1], model[:-1].transform(X))
    if isinstance(model, TableModel):
        check_is_fitted(model)
        warped = torch.from_numpy(np.asarray(model.columns_.transform(np.asarray(X)), dtype=np.float64))
        return check_metric(model.metric_).project(warped).numpy()
    if hasattr(model, "transform"):
        return np.asarray(model.transform(X), dtype=np.float64).reshape(len(X), -1)
    return None


def neighbors(model: Any, X: Any, row: int, n_rows: int = 5) -> Neighbors:
    """Return the rows of X that are nearest to one of them, by the distance that a model has learned.

    Parameters
    ----------
    model : fitted model with a learned metric or coordinates
    X : data frame, array-like of shape (n, d), or images
    row : int
        The position in X of the row whose neighbors are sought.
    n_rows : int, default=5
        The number of neighbors.

    Notes
    -----
    Takes O(n r) time for r coordinates, after these are computed.
    """
    n = len(X)
    check_count("row", row, at_least=0, at_most=n - 1, why="the number of rows - 1")
    n_rows = check_count("n_rows", n_rows, at_most=n - 1, why="the number of other rows")
    Z = seen_by(model, X)
    if Z is None:
        raise invalid_parameter("model", model, "a model with a learned metric or with coordinates")
    order, distances = _by_distance(Z, row)
    plain = np.empty(n, dtype=int)
    plain[_by_distance(_standardized(model, X), row)[0]] = np.arange(n - 1)
    return Neighbors(order[:n_rows], distances[order[:n_rows]], plain[order[:n_rows]])


def _by_distance(Z: np.ndarray, row: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the other rows in the order of their distance, and the distances of all rows."""
    distances = np.linalg.norm(Z - Z[row], axis=1)
    order = np.argsort(distances, kind="stable")
    return order[order != row], distances


def _standardized(model: Any, X: Any) -> np.ndarray:
    if isinstance(model, TabularModel):
        X = model.encoder_.transform(X)
    rows = np.asarray(X, dtype=np.float64).reshape(len(X), -1)
    spread = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
