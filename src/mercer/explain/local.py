"""The reasons for the prediction of one row, by a model of a table."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.tables import TabularModel


class Reasons(NamedTuple):
    """Why one row is predicted as it is.

    Attributes
    ----------
    prediction : float
        The mean, or the output of the class before it becomes a probability.
    center : float
        The mean of the target, from which the rows push the prediction away.
    feature_names : list of str
        The columns, the one that moves the prediction most first.
    gradient : ndarray of shape (d,)
        By how much the prediction moves with one unit of each, in that order, in the units of the column.
    effect : ndarray of shape (d,)
        The same for one standard deviation of the column as the model warps it.
    rows : ndarray of shape (n_rows,)
        Rows of the training table that pushed most.
    pushes : ndarray of shape (n_rows,)
        What each added to the prediction beside the mean; all rows together add up to prediction - center.
    """

    prediction: float
    center: float
    feature_names: list[str]
    gradient: np.ndarray
    effect: np.ndarray
    rows: np.ndarray
    pushes: np.ndarray

    def __str__(self) -> str:
        width = max(len(name) for name in self.feature_names)
        lines = [f"prediction {self.prediction:.4g} (the mean is {self.center:.4g})"]
        for name, slope, effect in zip(self.feature_names, self.gradient, self.effect, strict=True):
            lines.append(f"  {name:<{width}}  {slope:+.3g} a unit, {effect:+.3g} a standard deviation")
        pushes = ", ".join(f"row {row} {push:+.3g}" for row, push in zip(self.rows, self.pushes, strict=True))
        return "\n".join([*lines, f"  driven by {pushes}"])


def reasons(
    model: Any, x: Any, *, n_rows: int = 5, output: int = 0, feature_names: Sequence[str] | None = None
) -> Reasons:
    """Return the reasons for the prediction of one row.

    The gradient says how the prediction would move, the training rows what it rests on: f(x) - mean is the sum over
    training rows of alpha_j k(x_j, x), each of which is one row's push.

    Parameters
    ----------
    model : fitted RFMRegressor, RFMClassifier or GPRegressor
        Or one of these within `mercer.tabular`: reasons are then of the encoded columns.
    x : array-like of shape (d,) or (1, d), or a row of the table
    n_rows : int, default=5
        How many training rows to name.
    output : int, default=0
        Which target or class, where there are several.
    feature_names : sequence of str, optional
        Those of the fit by default.
    """
    if isinstance(model, TabularModel):
        check_is_fitted(model)
        rows = x.to_frame().T if hasattr(x, "to_frame") else x if np.ndim(x) == 2 else np.atleast_2d(np.asarray(x))
        encoded = model.encoder_.transform(rows)
        return reasons(model.estimator_, encoded, n_rows=n_rows, output=output, feature_names=feature_names)
    if not hasattr(model, "contributions"):
        raise invalid_parameter("model", model, "a fitted RFMRegressor, RFMClassifier or GPRegressor")
    row = x.to_frame().T if hasattr(x, "to_frame") else x if np.ndim(x) == 2 else np.atleast_2d(np.asarray(x))
    if len(row) != 1:
        raise invalid_parameter("x", tuple(np.shape(x)), "one row", "Explain rows one by one.")
    check_count("output", output, at_least=0, at_most=len(model.center_) - 1, why="the number of outputs - 1")
    gradients = np.asarray(model.gradients(row))[0].reshape(-1, model.n_features_in_)[output]
    pushes = np.asarray(model.contributions(row))[0].reshape(len(model.row_index_), -1)[:, output]
    center = float(model.center_[output])
    names = getattr(model, "feature_names_in_", None) if feature_names is None else feature_names
    named = [f"x{k}" for k in range(len(gradients))] if names is None else [str(name) for name in names]
    # A standard deviation of a warped column is 1; the slope of the warp at the row takes it back to units.
    raw = row.to_numpy(dtype=np.float64) if hasattr(row, "to_numpy") else np.asarray(row, dtype=np.float64)
    slopes = model.columns_.slopes(raw)[0]
    effect = np.divide(gradients, slopes, out=np.zeros_like(gradients), where=slopes != 0)
    order = np.argsort(-np.abs(effect), kind="stable")
    top = np.argsort(-np.abs(pushes), kind="stable")[: check_count("n_rows", n_rows)]
    return Reasons(
        center + float(pushes.sum()),
        center,
        [named[k] for k in order],
        gradients[order],
        effect[order],
        model.row_index_[top],
        pushes[top],
    )
