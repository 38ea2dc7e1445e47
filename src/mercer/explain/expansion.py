"""Answers as sums over training rows or landmarks, for every model that has such a sum."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from mercer.blocks import as_tensor
from mercer.checks import PRECISIONS, check_choice, validated
from mercer.clustering.subspace.subspace_clustering import SubspaceClustering
from mercer.discriminant.gaussian_classes import linear_log_joint
from mercer.discriminant.kernel_discriminant import KernelDiscriminant
from mercer.exceptions import invalid_parameter
from mercer.landmarks.kernel_map import KernelMap
from mercer.tables import TabularModel
from mercer.tabular_models.gp import GPRegressor
from mercer.tabular_models.gp_classifier import GPClassifier
from mercer.tabular_models.rfm import RFMClassifier
from mercer.tabular_models.table_model import TableModel
from mercer.views.sources import as_rows


class Expansion(NamedTuple):
    """Answers of a model as sums: values = intercept + the sum of contributions over training rows.

    Attributes
    ----------
    meaning : str
        What the values are: "prediction", "warped target", "logit", "coordinate" or "mass of a cluster".
    outputs : list of str
        Names of the c outputs: targets, classes, coordinates or clusters.
    intercept : ndarray of shape (c,)
    contributions : ndarray of shape (n, m, c)
    rows : ndarray of shape (m,)
        The row of the training table that each contribution belongs to, or its position among the landmarks if these
        were not rows of a table.
    """

    meaning: str
    outputs: list[str]
    intercept: np.ndarray
    contributions: np.ndarray
    rows: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """The intercept plus all contributions, of shape (n, c)."""
        return self.intercept + self.contributions.sum(axis=1)


def expansion(model: Any, X: Any, *, of: str = "answer") -> Expansion:
    """Return what every training row or landmark adds to the answers of a model.

    The answers are predictions of regressors, logits of classifiers, coordinates of embeddings, and the masses of
    clusters in subspace clustering. The softmax of the logits gives the probabilities; for a GPClassifier, it is the
    softmax at the mean of the latent functions. The sum includes averaged machines, leaves, trends and landmarks.

    Parameters
    ----------
    model : fitted model of Mercer
        Also within `mercer.tabular`, or at the end of a pipeline. Networks have no such sum and are refused.
    X : array-like of shape (n, d), a data frame, or images
    of : {"answer", "coordinates"}, default="answer"
        A discriminant both classifies and embeds: "coordinates" gives its coordinates instead of its logits.

    Returns
    -------
    Expansion

    Notes
    -----
    O(n m (d + c)) time and O(n m c) memory.
    """
    check_choice("of", of, ("answer", "coordinates"))
    if isinstance(model, TabularModel):
        check_is_fitted(model)
        return expansion(model.estimator_, model.encoder_.transform(X), of=of)
    if isinstance(model, Pipeline):
        return expansion(model[-1], model[:-1].transform(X), of=of)
    if isinstance(model, TableModel):
        return _of_table_model(model, X)
    if isinstance(model, KernelMap):
        return _of_map(model, X, of)
    if isinstance(model, SubspaceClustering):
        return _of_clusters(model, X)
    raise invalid_parameter(
        "model",
        model,
        "a kernel machine, a kernel map, a discriminant or a subspace clustering of Mercer",
        "Networks and other models are no sums over rows.",
    )


def _of_table_model(model: TableModel, X: Any) -> Expansion:
    check_is_fitted(model)
    sums = np.asarray(model.contributions(X))
    sums = sums.reshape(*sums.shape[:2], -1)
    center, classes = model.center_, getattr(model, "classes_", None)
    meaning = "prediction" if classes is None else "logit"
    if isinstance(model, RFMClassifier):
        sums, center = model.calibration_.scale * sums, model.calibration_.offsets
    elif isinstance(model, GPClassifier):
        # All machines share one sharpness.
        sums, center = model.machines_[0].sharpness * sums, model.machines_[0].offsets
    elif isinstance(model, GPRegressor) and any(warp.name != "none" for warp in model.target_warps_):
        meaning = "warped target"
    names = range(len(center)) if classes is None else classes
    return Expansion(meaning, [str(name) for name in names], np.asarray(center), sums, model.row_index_)


def kernel_values(model: KernelMap, X: Any) -> np.ndarray:
    """Return the kernel values of X with the training rows or landmarks of a map, of shape (n, m)."""
    check_is_fitted(model)
    if hasattr(model, "sample_shape_"):
        X = as_rows(X, model.sample_shape_)
    X = validated(model, X, dtype=PRECISIONS, reset=False)
    basis = getattr(model, "landmarks_", None)
    if model.kernel_ is None:
        columns = getattr(model, "landmark_indices_", None)
        return X if columns is None else X[:, columns]
    basis = model.basis_ if basis is None else basis  # type: ignore[attr-defined]
    dtype = as_tensor(X[:0]).dtype
    return model.kernel_.matrix(as_tensor(X), as_tensor(basis, dtype=dtype)).numpy()


def _of_map(model: KernelMap, X: Any, of: str) -> Expansion:
    K, A = kernel_values(model, X), model.coefficients_
    bias = np.asarray(getattr(model, "bias_", np.zeros(A.shape[1])))
    indices = getattr(model, "landmark_indices_", None)
    rows = np.arange(len(A)) if indices is None or len(indices) != len(A) else np.asarray(indices)
    if isinstance(model, KernelDiscriminant) and of == "answer":
        slopes, offsets = linear_log_joint(model.centroids_, model.covariance_, model.priors_, model.temperature_)
        outputs = [str(name) for name in model.classes_]
        return Expansion("logit", outputs, bias @ slopes + offsets, K[:, :, None] * (A @ slopes), rows)
    outputs = [str(name) for name in model.get_feature_names_out()]
    return Expansion("coordinate", outputs, bias, K[:, :, None] * A, rows)


def _of_clusters(model: SubspaceClustering, X: Any) -> Expansion:
    C = abs(model.expressed(X))
    weights = np.asarray(C.toarray() if hasattr(C, "toarray") else C).T
    own = model.labels_[model.landmark_indices_]
    n_clusters = int(model.labels_.max()) + 1
    masses = weights[:, :, None] * (own[:, None] == np.arange(n_clusters))
    names = [str(cluster) for cluster in range(n_clusters)]
    return Expansion("mass of a cluster", names, np.zeros(n_clusters), masses, np.asarray(model.landmark_indices_))
