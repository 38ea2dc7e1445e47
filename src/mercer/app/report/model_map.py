"""Where rows lie on a page: the first two coordinates of what a model sees in them."""

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
    """Places of rows, of shape (n, 2), and what being near means on the map, in words."""

    places: np.ndarray
    words: str


def map_of(model: Any, X: Any, random: np.random.RandomState) -> Map:
    """Return the map of rows as a model sees them.

    Representations and discriminants by their own coordinates, models of tables by their learned metric, clusterings by
    the neighborhoods of the rows; other models by the standardized columns. More than two coordinates are shown by
    their first two principal ones.

    Parameters
    ----------
    model : fitted estimator
    X : data frame or ndarray
    random : RandomState
        Draws the rows that a map of neighborhoods is made of.

    Notes
    -----
    O(n d^2) for principal coordinates; a map of neighborhoods takes seconds for the 1000 rows that it is made of.
    """
    inner, rows = innermost(model, X)
    if isinstance(inner, SubspaceClustering):
        rows = np.asarray(rows, dtype=np.float64).reshape(len(rows), -1)
        return Map(places_of(rows, random), "neighbors in the data are neighbors on the map")
    E = seen_by(inner, rows)
    if isinstance(inner, TableModel) and E is not None:
        return Map(principal_map(E), "rows are near if the learned metric of the model has them near")
    if E is not None:
        which = "the coordinates" if E.shape[1] <= 2 else f"two principal directions of {E.shape[1]} coordinates"
        return Map(E if E.shape[1] == 2 else principal_map(E), f"{which} of the model")
    numbers = TableEncoder().fit_transform(X) if hasattr(X, "columns") else np.asarray(X, dtype=np.float64)
    scaled = StandardScaler().fit_transform(np.asarray(numbers).reshape(len(X), -1))
    return Map(principal_map(scaled), "two principal directions of the columns")


def innermost(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the estimator within wrappers, and rows as it takes them; of no rows, none."""
    if isinstance(model, TabularModel):
        return innermost(model.estimator_, None if X is None else model.encoder_.transform(X))
    if isinstance(model, Pipeline):
        return innermost(model[-1], None if X is None else model[:-1].transform(X))
    return model, X
