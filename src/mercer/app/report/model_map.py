"""Places of rows on a map: two coordinates of the rows as a model represents them."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mercer.app.projects.embedding import principal_map
from mercer.app.report.clustering import places_of
from mercer.clustering.subspace.subspace_clustering import SubspaceClustering
from mercer.explain import seen_by
from mercer.tables import TabularModel
from mercer.tables.encoder import TableEncoder
from mercer.tabular_models.table_model import TableModel


class Map(NamedTuple):
    """Places of rows, of shape (n, 2), and a clause that says what their places mean."""

    places: np.ndarray
    words: str


def map_of(model: Any, X: Any, random: np.random.RandomState) -> Map:
    """Return a map of the rows as a model represents them.

    Representations and discriminants place the rows by their own coordinates, models of tables by their learned metric,
    and clusterings by the neighborhoods of the rows. For other models, the rows are placed by their standardized
    columns. Of more than two coordinates, the first two principal components are used.

    Parameters
    ----------
    model : fitted estimator
    X : data frame or ndarray
    random : RandomState
        Draws the rows that a map of neighborhoods is made of.

    Notes
    -----
    Principal components take O(n d^2); a map of neighborhoods takes seconds for the 1000 rows that it is made of.
    """
    inner, rows = innermost(model, X)
    if isinstance(inner, SubspaceClustering):
        rows = np.asarray(rows, dtype=np.float64).reshape(len(rows), -1)
        return Map(places_of(rows, random), "rows are near if they are neighbors in the data")
    E = seen_by(inner, rows)
    if isinstance(inner, TableModel) and E is not None:
        return Map(principal_map(E), "rows are near if they are near in the learned metric of the model")
    if E is not None:
        which = "the coordinates" if E.shape[1] <= 2 else f"two principal directions of {E.shape[1]} coordinates"
        return Map(E if E.shape[1] == 2 else principal_map(E), f"rows are placed by {which} of the model")
    numbers = TableEncoder().fit_transform(X) if hasattr(X, "columns") else np.asarray(X, dtype=np.float64)
    scaled = StandardScaler().fit_transform(np.asarray(numbers).reshape(len(X), -1))
    return Map(principal_map(scaled), "rows are placed by two principal directions of the columns")


def innermost(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the estimator inside a TabularModel or a Pipeline, and X as that estimator takes it (None stays None)."""
    if isinstance(model, TabularModel):
        return innermost(model.estimator_, None if X is None else model.encoder_.transform(X))
    if isinstance(model, Pipeline):
        return innermost(model[-1], None if X is None else model[:-1].transform(X))
    return model, X
