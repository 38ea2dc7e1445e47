"""Reasons for the answer about one row: its gradient, the training rows behind it, and how sure the model is."""

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
    """The reasons for the answer about one row.

    Attributes
    ----------
    prediction : float
        The predicted mean, the logit of a class, a coordinate or the mass of a cluster, as `meaning` says.
    center : float
        The mean of the target, or another intercept, to which the training rows add their pushes.
    feature_names : list of str
        The columns, largest effect first; empty for models without a gradient.
    gradient : ndarray of shape (d,)
        The derivative of the prediction by each column, in the order of `feature_names` and the units of the column.
        It is NaN for a column without units, such as a category.
    effect : ndarray of shape (d,)
        The same for one standard deviation of the column as the model sees it; without a sign for a category.
    rows : ndarray of shape (n_rows,)
        The rows of the training table with the largest pushes.
    pushes : ndarray of shape (n_rows,)
        What each of these rows adds to the prediction. The pushes of all training rows sum to prediction - center.
    meaning : str
        "prediction", "warped target", "logit", "coordinate" or "mass of a cluster".
    output : str
        The target, class, coordinate or cluster that is explained.
    doubt : float or None
        How unsure the model is: the standard deviation of a new target for a Gaussian process, one minus the largest
        class probability, or the share of the mass outside the cluster. None for other models.
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

    The gradient says how the answer changes with each column. The training rows say where the answer comes from:
    f(x) - center is the sum over training rows of alpha_j k(x_j, x), and each term is the push of one row.

    Parameters
    ----------
    model : fitted model of Mercer
        A kernel regressor, classifier, embedding or discriminant, or a subspace clustering, also within
        `mercer.tabular` or at the end of a pipeline. Networks are not sums over rows and are refused.
    x : Series, data frame of one row, array-like of shape (d,) or (1, d), or an image
    n_rows : int, default=5
        The number of training rows to name.
    output : int or str, optional
        The target, class, coordinate or cluster to explain, by position or name. By default the class or cluster that
        is predicted, or the first target or coordinate.
    feature_names : sequence of str, optional
        By default those of the fit.
    """
    row = x.to_frame().T if hasattr(x, "to_frame") else x
    if not hasattr(row, "columns"):
        row = np.asarray(row)
        # An array with one axis is one row, and a single image becomes a batch of one.
        row = row[None] if row.ndim == 1 or _is_one_image(model, row) else row
    elif hasattr(x, "to_frame"):
        row = row.infer_objects()  # a row taken from a table has one dtype for all its values
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
        prediction=float(found.values[0, index]),
        center=float(found.intercept[index]),
        feature_names=names,
        gradient=gradient,
        effect=effect,
        rows=found.rows[top],
        pushes=pushes[top],
        meaning=found.meaning,
        output=found.outputs[index],
        doubt=_doubt(model, row, found, index),
    )


def _output(found: Expansion, output: Any) -> int:
    """Return the position of an output; by default the largest of classes or clusters, otherwise the first."""
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
