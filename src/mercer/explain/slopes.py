"""The gradient of an answer at one row, for every model whose function has a gradient in closed form."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from mercer.agop import predictor_gradients
from mercer.discriminant.gaussian_classes import linear_log_joint
from mercer.discriminant.kernel_discriminant import KernelDiscriminant
from mercer.landmarks.kernel_map import KernelMap
from mercer.tables import TabularModel
from mercer.tables.readers import Numbers
from mercer.tabular_models.gp_classifier import GPClassifier
from mercer.tabular_models.rfm import RFMClassifier
from mercer.tabular_models.table_model import TableModel
from mercer.views.sources import as_rows


class Slopes(NamedTuple):
    """The gradient of one output at one row.

    Attributes
    ----------
    names : list of str
        The columns.
    gradient : ndarray of shape (d,)
        The derivative of the output by each column; NaN for a column that has no units, such as a category.
    effect : ndarray of shape (d,)
        The same for one standard deviation of the column as the model sees it. A column that is encoded as several
        numbers has no single direction: its effect is the largest change that such a move can cause, without a sign.
    """

    names: list[str]
    gradient: np.ndarray
    effect: np.ndarray


def slopes(model: Any, row: Any, output: int) -> Slopes | None:
    """Return the gradient of an output of `expansion` at one row, or None for models without a known gradient.

    Parameters
    ----------
    model : fitted model of Mercer
    row : data frame, array-like of shape (1, d), or one image in a batch
    output : int
        Its position among the outputs of `expansion`.
    """
    if isinstance(model, TabularModel):
        return _in_columns_of_the_table(model, slopes(model.estimator_, model.encoder_.transform(row), output))
    if isinstance(model, Pipeline):
        return slopes(model[-1], model[:-1].transform(row), output)
    if isinstance(model, TableModel):
        return _of_table_model(model, row, output)
    if isinstance(model, KernelMap) and model.kernel_ is not None:
        return _of_map(model, row, output)
    return None


def _of_table_model(model: TableModel, row: Any, output: int) -> Slopes:
    gradient = np.asarray(model.gradients(row))[0].reshape(-1, model.n_features_in_)[output]
    # The contributions in expansion.py have the same factors.
    if isinstance(model, RFMClassifier):
        gradient = model.calibration_.scale * gradient
    elif isinstance(model, GPClassifier):
        gradient = model.machines_[0].sharpness * gradient
    # Warped columns have standard deviation 1, and the slope of the warp at the row converts units to these.
    raw = row.to_numpy(dtype=np.float64) if hasattr(row, "to_numpy") else np.asarray(row, dtype=np.float64)
    warp = model.columns_.slopes(raw)[0]
    effect = np.divide(gradient, warp, out=np.zeros_like(gradient), where=warp != 0)
    return Slopes(_names(model, len(gradient)), gradient, effect)


def _of_map(model: KernelMap, row: Any, output: int) -> Slopes:
    row = as_rows(row, model.sample_shape_) if hasattr(model, "sample_shape_") else row
    landmarks, A = getattr(model, "landmarks_", None), model.coefficients_
    basis = model.basis_ if landmarks is None else landmarks  # type: ignore[attr-defined]
    if isinstance(model, KernelDiscriminant):
        A = A @ linear_log_joint(model.centroids_, model.covariance_, model.priors_, model.temperature_)[0]
    x = np.asarray(row, dtype=np.float64)
    gradient = np.asarray(predictor_gradients(model.kernel_, x, np.asarray(basis, dtype=np.float64), A[:, [output]]))
    gradient = gradient.reshape(-1)
    return Slopes(_names(model, len(gradient)), gradient, gradient * np.std(np.asarray(basis), axis=0))


def _in_columns_of_the_table(model: TabularModel, encoded: Slopes | None) -> Slopes | None:
    """Return the slopes of encoded columns as slopes of the columns of the table."""
    if encoded is None:
        return None
    origins, d = model.encoder_.origins_, model.n_features_in_
    gradient, effect = np.full(d, np.nan), np.zeros(d)
    place = 0
    for column in model.encoder_.columns_:
        own = slice(place, place + len(column.names()))
        place = own.stop
        k = int(origins[own.start]) if own.start < own.stop else -1
        if isinstance(column.reader, Numbers) and len(column.kept):
            gradient[k] = encoded.gradient[own][0] * column.factor[0]
            effect[k] = encoded.effect[own][0]
        elif k >= 0:
            effect[k] = np.hypot(effect[k], np.linalg.norm(encoded.effect[own]))
    return Slopes(_names(model, d), gradient, effect)


def _names(model: Any, d: int) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    return [f"x{k}" for k in range(d)] if names is None else [str(name) for name in names]
