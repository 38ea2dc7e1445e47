"""Why one row has the answer it has: what it is like, what the answer hangs on, and how sure it is."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from mercer.checks import check_count
from mercer.exceptions import invalid_parameter
from mercer.explain.expansion import Expansion, expansion
from mercer.explain.slopes import slopes
from mercer.tables import TabularModel
from mercer.tabular_models.gp import GPRegressor


class Reasons(NamedTuple):
    """Why one row has the answer it has.

    Attributes
    ----------
    prediction : float
        The mean, the logit of the class, the coordinate or the mass of the cluster; what it is, `meaning` says.
    center : float
        The mean of the target, or another intercept, from which the rows push the prediction away.
    feature_names : list of str
        The columns, the one that moves the prediction most first; none for models without a gradient.
    gradient : ndarray of shape (d,)
        By how much the prediction moves with one unit of each, in that order, in the units of the column; NaN for a
        column without units, such as a category.
    effect : ndarray of shape (d,)
        The same for one standard deviation of the column as the model sees it; without a sign for a category.
    rows : ndarray of shape (n_rows,)
        Rows of the training table that pushed most.
    pushes : ndarray of shape (n_rows,)
        What each added to the prediction beside the center; all rows together add up to prediction - center.
    meaning : str
        "prediction", "warped target", "logit", "coordinate" or "mass of a cluster".
    output : str
        Which target, class, coordinate or cluster it is about.
    doubt : float or None
        How sure the model is: the standard deviation of a new target of a Gaussian process, one minus the
        probability of the most probable class, or the share of the mass outside the cluster; None where there is none.
    """

    prediction: float
    center: float
    feature_names: list[str]
    gradient: np.ndarray
    effect: np.ndarray
    rows: np.ndarray
    pushes: np.ndarray
    meaning: str = "prediction"
    output: str = "0"
    doubt: float | None = None

    def __str__(self) -> str:
        width = max((len(name) for name in self.feature_names), default=0)
        of = "" if self.meaning == "prediction" else f" of {self.output}"
        lines = [f"{self.meaning}{of} {self.prediction:.4g} ({_begins(self.meaning)} {self.center:.4g})"]
        if self.doubt is not None:
            lines.append(f"  doubt {self.doubt:.3g}")
        for name, slope, effect in zip(self.feature_names, self.gradient, self.effect, strict=True):
            a_unit = "" if np.isnan(slope) else f"{slope:+.3g} a unit, "
            sign = "" if np.isnan(slope) else "+"
            lines.append(f"  {name:<{width}}  {a_unit}{effect:{sign}.3g} a standard deviation")
        pushes = ", ".join(f"row {row} {push:+.3g}" for row, push in zip(self.rows, self.pushes, strict=True))
        return "\n".join([*lines, f"  driven by {pushes}"])


def reasons(
    model: Any, x: Any, *, n_rows: int = 5, output: Any = None, feature_names: Sequence[str] | None = None
) -> Reasons:
    """Return the reasons for the answer about one row.

    The gradient says how the answer would move, the training rows what it rests on: f(x) - mean is the sum over
    training rows of alpha_j k(x_j, x), each of which is one row's push.

    Parameters
    ----------
    model : fitted model of Mercer
        Regressors, classifiers, embeddings and discriminants on kernels, subspace clusterings; within `mercer.tabular`
        or at the end of a pipeline too. Networks are no sums over rows and are refused.
    x : Series, data frame of one row, array-like of shape (d,) or (1, d), or an image
    n_rows : int, default=5
        How many training rows to name.
    output : int or str, optional
        Which target, class, coordinate or cluster, by position or name. By default the class or cluster that is
        predicted, and else the first.
    feature_names : sequence of str, optional
        Those of the fit by default.
    """
    row = x.to_frame().T if hasattr(x, "to_frame") else x
    if not hasattr(row, "columns"):
        row = np.asarray(row)
        # What has one axis is a row, and an image that comes by itself is a batch of one.
        row = row[None] if row.ndim == 1 or _is_one_image(model, row) else row
    elif hasattr(x, "to_frame"):
        row = row.infer_objects()  # a row that was taken from a table has one type for all its values
    if len(row) != 1:
        raise invalid_parameter("x", tuple(np.shape(x)), "one row", "Explain rows one by one.")
    n_rows = check_count("n_rows", n_rows)
    found = expansion(model, row)
    index = _output(found, output)
    pushes = found.contributions[0, :, index]
    moved = slopes(model, row, index)
    names: list[str] = []
    gradient = effect = np.zeros(0)
    if moved is not None:
        given = moved.names if feature_names is None else [str(name) for name in feature_names]
        if len(given) != len(moved.names):
            raise invalid_parameter("feature_names", feature_names, f"a sequence of {len(moved.names)} names")
        order = np.argsort(-np.abs(moved.effect), kind="stable")
        names, gradient, effect = [given[k] for k in order], moved.gradient[order], moved.effect[order]
    top = np.argsort(-np.abs(pushes), kind="stable")[:n_rows]
    return Reasons(
        float(found.values[0, index]),
        float(found.intercept[index]),
        names,
        gradient,
        effect,
        found.rows[top],
        pushes[top],
        found.meaning,
        found.outputs[index],
        _doubt(model, row, found, index),
    )


def _output(found: Expansion, output: Any) -> int:
    """Return the position of an output by its name or position; of the largest one for classes and clusters."""
    if output is None:
        return int(found.values[0].argmax()) if found.meaning in ("logit", "mass of a cluster") else 0
    if isinstance(output, str) and output in found.outputs:
        return found.outputs.index(output)
    if isinstance(output, str):
        raise invalid_parameter("output", output, f"one of {found.outputs}")
    return check_count("output", output, at_least=0, at_most=len(found.outputs) - 1, why="the number of outputs - 1")


def _doubt(model: Any, row: Any, found: Expansion, index: int) -> float | None:
    if isinstance(model, TabularModel):
        return _doubt(model.estimator_, model.encoder_.transform(row), found, index)
    if isinstance(model, Pipeline):
        return _doubt(model[-1], model[:-1].transform(row), found, index)
    if found.meaning == "logit":
        return 1.0 - float(np.max(model.predict_proba(row)))
    if found.meaning == "mass of a cluster":
        total = found.values[0].sum()
        return 1.0 - float(found.values[0, index] / total) if total > 0 else 1.0
    if isinstance(model, GPRegressor):
        return float(np.reshape(model.predict(row, return_std=True)[1], -1)[index])
    return None


def _is_one_image(model: Any, row: np.ndarray) -> bool:
    return row.ndim > 1 and row.shape == tuple(getattr(model, "sample_shape_", None) or ())


def _begins(meaning: str) -> str:
    return "the mean is" if meaning == "prediction" else "it begins at"
