"""Why a model was wrong about a row: which columns moved the answer, and which training rows counted most."""

from typing import Any

import numpy as np

from mercer.app.projects.column_needs import ranked_columns
from mercer.explain import expansion
from mercer.tables import TabularModel

# The most rows that are explained; and for each the most columns that are tried, columns that are reported, and
# training rows that are named.
MOST_WRONG, MOST_TRIED, MOST_TOLD, MOST_NAMED = 3, 20, 4, 3


def explain_wrong(
    task: str,
    fitted: TabularModel,
    table: Any,
    y: np.ndarray,
    rows: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    badness: np.ndarray,
) -> list[dict[str, Any]]:
    """Return reasons for the rows left out that the model was most wrong about.

    Parameters
    ----------
    task : {"regression", "classification"}
    fitted : TabularModel
    table : data frame
        All rows.
    y : ndarray of shape (n,)
    rows : ndarray of int of shape (n,)
        The positions of the rows in the user's table.
    train, test : ndarray of int
    badness : ndarray of shape (n_test,)
        How wrong the prediction of each left-out row is; see `badness_of`.

    Returns
    -------
    list of dict
        For each row:

        - `row`: its position in the user's table.
        - `columns`: those that moved the answer most. For each the `column`, its `value` in this row, its `typical`
          value among the training rows, and `moves_by`, the answer minus the answer for the typical value (a number, or
          the probability of the predicted class).
        - `like`: the training rows that counted most, with their `target` as text, and what each `adds` to the answer,
          or to the logit of the predicted class minus that of the right one.
        - `support`: for a Gaussian process, near 0 if it has seen no row like this one; otherwise None.
    """
    worst = test[np.argsort(-badness, kind="stable")[:MOST_WRONG]]
    found = explain_answers(task, fitted, table.iloc[worst], typical_values(table.iloc[train]), y[worst])
    for place, entry in zip(worst, found, strict=True):
        entry["row"] = int(rows[place])
        for like in entry["like"]:
            learned = train[like["row"]]
            like |= {"row": int(rows[learned]), "target": _as_text(y[learned])}
    return found


def explain_answers(
    task: str, fitted: TabularModel, some: Any, typical: dict[str, Any], true: np.ndarray | None = None
) -> list[dict[str, Any]]:
    """Return reasons for the answers to some rows: `columns`, `like` and `support`; see `explain_wrong`.

    The rows of `like` are given by their positions among the training rows.

    Parameters
    ----------
    task : {"regression", "classification"}
    fitted : TabularModel
    some : data frame
        The rows.
    typical : dict
        The typical value of each column among the training rows; see `typical_values`.
    true : ndarray of shape (n,) or None
        The right classes, if they are known. `adds` then compares the predicted class with the right one.
    """
    named = fitted.predict(some)
    output = _outputs(task, fitted, some, named)
    names = [name for name in ranked_columns(fitted) if name in some.columns][:MOST_TRIED]
    moves = {name: output - _outputs(task, fitted, _with(some, name, typical[name]), named) for name in names}
    adds, learned = _added(task, fitted, some, named if true is None else true)
    support = fitted.support(some).tolist() if hasattr(fitted, "support") else [None] * len(some)
    found = []
    for i in range(len(some)):
        told = [names[j] for j in np.argsort([-abs(moves[name][i]) for name in names], kind="stable")[:MOST_TOLD]]
        like = np.argsort(-np.abs(adds[i]), kind="stable")[:MOST_NAMED]
        columns = [
            {
                "column": name,
                "value": _as_text(some[name].iloc[i]),
                "typical": _as_text(_with(some.iloc[:1], name, typical[name])[name].iloc[0]),
                "moves_by": float(moves[name][i]),
            }
            for name in told
            if moves[name][i] != 0
        ]
        found.append(
            {
                "columns": columns,
                "like": [{"row": int(learned[j]), "adds": float(adds[i, j])} for j in like],
                "support": support[i],
            }
        )
    return found


def typical_values(table: Any) -> dict[str, Any]:
    """Return the typical value of each column as a plain value: the median of numbers and dates, else the mode.

    A column without values has None.

    Parameters
    ----------
    table : data frame
    """
    return {str(name): _typical(table[name]) for name in table.columns}


def badness_of(y: np.ndarray, predicted: np.ndarray, probabilities: Any = None, classes: Any = None) -> np.ndarray:
    """Return how wrong predictions are: the absolute error, or 1 - the probability of the right class."""
    if probabilities is None:
        return np.abs(y - predicted)
    right = np.zeros(len(y))
    for k, label in enumerate(classes):
        right[y == label] = probabilities[y == label, k]
    return 1.0 - right


def _outputs(task: str, fitted: TabularModel, table: Any, named: Any) -> np.ndarray:
    """Return predicted numbers, or the probability of the class `named` for each row."""
    if task == "regression":
        return np.asarray(fitted.predict(table))
    place = np.searchsorted(fitted.classes_, named)
    return np.asarray(fitted.predict_proba(table))[np.arange(len(table)), place]


def _added(task: str, fitted: TabularModel, table: Any, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what each of m training rows adds to the answers, of shape (n, m), and which rows these are."""
    found = expansion(fitted, table)
    if task == "regression" or found.contributions.shape[2] == 1:
        return found.contributions[:, :, 0], found.rows
    classes, each = [str(label) for label in fitted.classes_], np.arange(len(table))
    named = [classes.index(str(label)) for label in fitted.predict(table)]
    # A class that the fit has not seen has no logit, so that only that of the predicted class is used.
    right = [classes.index(str(label)) if str(label) in classes else None for label in true]
    adds = found.contributions[each, :, named]
    for i, place in enumerate(right):
        if place is not None and place != named[i]:
            adds[i] = adds[i] - found.contributions[i, :, place]
    return adds, found.rows


def _typical(column: Any) -> Any:
    present = column.dropna()
    if not len(present):
        return None
    if present.dtype.kind in "iufM":
        middle = present.sort_values().iloc[len(present) // 2]
        return middle.isoformat() if hasattr(middle, "isoformat") else middle.item()
    most = present.mode().iloc[0]
    return most.item() if isinstance(most, np.generic) else most


def _with(table: Any, name: str, value: Any) -> Any:
    """Return the rows with the same value in all rows of a column, whose type is kept."""
    column = table[name]
    return table.assign(**{name: type(column)([value] * len(table), index=table.index).astype(column.dtype)})


def _as_text(value: Any) -> str:
    if hasattr(value, "strftime"):
        return value.strftime("%Y-%m-%d") if value == value else "missing"
    if value is None or value != value:
        return "missing"
    if not isinstance(value, (float, np.floating)):
        return str(value)
    # Four significant digits, and no power of ten unless the number is very large or small.
    number = float(value)
    return f"{number:.0f}" if 1e4 <= abs(number) < 1e12 else f"{number:.4g}"
