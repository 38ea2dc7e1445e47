"""How much worse the rows left out are predicted without each column, as growth of RMSE or log loss with intervals."""

import warnings
from typing import Any

import numpy as np

from mercer.app.projects.new_rows import UNUSED_KINDS
from mercer.explain import permutation_importances
from mercer.tables import TabularModel

# The most columns that are permuted one by one (the rest are permuted together), and the most and fewest rows for it.
MOST_COLUMNS, MOST_ROWS, FEWEST_ROWS = 10, 1000, 20


def column_needs(
    task: str, fitted: TabularModel, table: Any, y: np.ndarray, random: np.random.RandomState
) -> list[dict[str, Any]]:
    """Return how much RMSE or log loss grows when a column is permuted among the rows left out, the largest first.

    Parameters
    ----------
    task : {"regression", "classification"}
    fitted : TabularModel
    table : data frame
        Rows that the model has not learned from.
    y : ndarray of shape (n,)
    random : RandomState
        Draws the rows, if there are many, and the permutations.

    Returns
    -------
    list of dict
        `column`, `grows_by`, and the ends of its 90 % interval, `low` and `high`. Columns beyond the first ten are
        permuted together, under a name that says how many they are. Empty if there are too few rows.
    """
    known = np.isin(y, fitted.classes_) if task == "classification" else np.ones(len(y), dtype=bool)
    rows = np.sort(random.permutation(np.flatnonzero(known))[:MOST_ROWS])
    if len(rows) < FEWEST_ROWS:
        return []
    rest = ranked_columns(fitted)[MOST_COLUMNS:]
    groups = {f"{len(rest)} other columns": rest} if rest else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that some of these rows have copies among the training rows
        found = permutation_importances(fitted, table.iloc[rows], y[rows], groups=groups, random_state=random)
    idle = {name for name, kind in fitted.encoder_.kinds_.items() if kind in UNUSED_KINDS}
    ends = np.stack([found.mean, found.lower, found.upper])
    if task == "regression":  # from mean squared errors to their roots, which keeps the order
        ends = np.sqrt(np.maximum(found.loss + ends, 0.0)) - np.sqrt(found.loss)
    order = np.argsort(-ends[0], kind="stable")
    return [
        {"column": found.names[k], "grows_by": float(grows), "low": float(low), "high": float(high)}
        for k, (grows, low, high) in zip(order, ends.T[order], strict=True)
        if found.names[k] not in idle
    ]


def ranked_columns(fitted: TabularModel) -> list[str]:
    """Return the columns of a table, the most important first; in the table's order if the model has no importances."""
    if hasattr(fitted.estimator_, "feature_importances_"):
        return [str(name) for name in fitted.importances_.index]
    return [str(name) for name in fitted.feature_names_in_]
