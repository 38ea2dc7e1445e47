"""Predictions of fitted discriminants: the values of the components, the classes, and classes that are added later."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer.checks import all_or_nothing, answers_without_nan, distinct_classes
from mercer.discriminant.gaussian_classes import log_joint, squared_class_distances
from mercer.exceptions import DataWarning, invalid_parameter, warn_user
from mercer.landmarks.kernel_map import KernelMap
from mercer.rows import wherever_rows_are


class ClassPredictions(ClassifierMixin, KernelMap):
    """Predict components and classes of new rows; `KernelDiscriminant` fits the attributes that this uses."""

    # Attributes that `fit` sets.
    basis_: np.ndarray | None
    bias_: np.ndarray
    classes_: np.ndarray
    centroids_: np.ndarray
    covariance_: np.ndarray
    priors_: np.ndarray
    temperature_: float

    @wherever_rows_are
    def transform(self, X: Any) -> np.ndarray:
        """Return the values of the components, of shape (n, n_components): (11), or (14) if centered.

        Parameters
        ----------
        X : array-like of shape (n, d)
            The rows. If the kernel is precomputed, the kernel matrix between these rows and those of `fit`.
        """
        check_is_fitted(self)
        return self._evaluate(X, self.basis_, bias=self.bias_)

    @answers_without_nan
    def _log_joint(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        values = np.asarray(self.transform(X), dtype=np.float64)
        squares = squared_class_distances(values, self.centroids_, self.covariance_)
        return log_joint(squares, self.priors_, self.temperature_)

    @wherever_rows_are
    def decision_function(self, X: Any) -> np.ndarray:
        """Return log prior + log density of each class up to a constant, of shape (n, n_classes).

        For two classes, the difference of the second and the first is returned, of shape (n,).
        """
        joint = self._log_joint(X)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    @wherever_rows_are
    @answers_without_nan
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`."""
        joint = self._log_joint(X)
        return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)

    @wherever_rows_are
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, of shape (n, n_classes)."""
        return np.exp(self.predict_log_proba(X))

    @wherever_rows_are
    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row."""
        joint = self._log_joint(X)
        return self.classes_[joint.argmax(axis=1)]

    @all_or_nothing
    def add_classes(self, X: Any, y: Any) -> Any:
        """Add new classes by the centers of their rows in the discriminant space, without refitting.

        The new classes share the covariance of the others. Each gets the mean of the known priors, whatever its number
        of rows here, and all priors are scaled to sum to 1. A class may have a single row, with a warning.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : array-like of shape (n,)
            The class of each row; none of these may be known to the model already.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        values = np.asarray(self.transform(X), dtype=np.float64)
        y = np.asarray(y)
        if y.ndim != 1 or len(y) != len(values):
            raise ValueError(f"y has shape {y.shape} and X has {len(values)} rows: y must have one class a row.")
        new, index, counts = distinct_classes(y, return_inverse=True, return_counts=True)
        if (new.dtype.kind in "OSU") != (self.classes_.dtype.kind in "OSU"):
            raise invalid_parameter("y", list(new), f"of the kind of the known classes, {self.classes_.dtype}")
        known = np.intersect1d(new, self.classes_)
        if len(known):
            raise invalid_parameter("y", list(known), "classes that are not known yet")
        if counts.min() == 1:
            warn_user(
                f"the classes {new[counts == 1].tolist()} have one row each: it is their center.",
                DataWarning,
            )
        centroids = np.stack([values[index == i].mean(axis=0) for i in range(len(new))])
        classes = np.concatenate([self.classes_, new])
        # scikit-learn keeps classes sorted.
        order = np.argsort(classes, kind="stable")
        self.classes_ = classes[order]
        self.centroids_ = np.concatenate([self.centroids_, centroids])[order]
        priors = np.concatenate([self.priors_, np.full(len(new), self.priors_.mean())])[order]
        self.priors_ = priors / priors.sum()
        return self
