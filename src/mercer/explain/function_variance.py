"""The uncertainty of a Gaussian process about weighted sums of its function values."""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from mercer.tables import TabularModel
from mercer.tabular_models.gp import GPRegressor


def weighted_covariance(model: Any, X: Any, weights: np.ndarray, output: int = 0) -> np.ndarray | None:
    """Return the covariance of W f(X) under the model, of shape (k, k), or None for models that do not know it.

    Parameters
    ----------
    model : fitted estimator
        A GPRegressor, also within `mercer.tabular` or at the end of a pipeline.
    X : data frame or array-like of shape (r, d)
    weights : ndarray of shape (k, r)
        W.
    output : int, default=0
        The position of the target.
    """
    if isinstance(model, TabularModel):
        return weighted_covariance(model.estimator_, model.encoder_.transform(X), weights, output)
    if isinstance(model, Pipeline):
        return weighted_covariance(model[-1], model[:-1].transform(X), weights, output)
    if not isinstance(model, GPRegressor):
        return None
    covariance = np.asarray(model.latent_cov(X)).reshape(len(weights[0]), len(weights[0]), -1)[:, :, output]
    return weights @ covariance @ weights.T
