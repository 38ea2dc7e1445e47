"""Prediction for new points: the coefficients that express them by points of the fit, and their clusters."""

from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mercer.blocks import as_tensor
from mercer.checks import finite_answers, validated
from mercer.clustering.expression import check_expression
from mercer.clustering.subspace.features import new_rows
from mercer.clustering.subspace.graphs import expressed_in, voted_labels
from mercer.kernels import Kernel
from mercer.mahalanobis import Mahalanobis
from mercer.rows import wherever_rows_are

# The number of coefficients of each point that truncate="auto" keeps if self-expression is not sparse by itself.
KEPT = 6


class SubspacePredictions(ClusterMixin, BaseEstimator):
    """The part of `SubspaceClustering` that predicts the clusters of new points."""

    # Parameters and fitted attributes, which the subclass sets.
    self_expression: Any
    truncate: int | str | None
    normalize: bool
    working_memory: float
    labels_: np.ndarray
    landmark_indices_: np.ndarray
    dictionary_: np.ndarray
    metric_: Mahalanobis
    kernel_: Kernel
    expression_: Any

    @wherever_rows_are
    @finite_answers
    def predict(self, X: Any) -> np.ndarray:
        """Return the clusters of new points, by the coefficients that express them by points of the fit.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
            The cluster with the largest sum of absolute coefficients. Points whose coefficients are all zero, such as a
            row of zeros, are assigned to the largest cluster.
        """
        return voted_labels(self.expressed(X), self.labels_[self.landmark_indices_], self.labels_)

    def expressed(self, X: Any) -> Any:
        """Return the coefficients that express new points by points of the fit.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray or sparse matrix of shape (m, n)
            Row j belongs to the point `landmark_indices_[j]` of the fit.
        """
        check_is_fitted(self)
        X = validated(self, X, dtype=np.float64, reset=False)
        rows = new_rows(as_tensor(X), self.metric_, normalize=self.normalize)
        return expressed_in(
            self.expression_,
            self.kernel_,
            torch.from_numpy(self.dictionary_),
            rows,
            None,
            self._truncate(),
            self.working_memory,
        )

    def _truncate(self) -> int | None:
        if self.truncate == "auto":
            return None if check_expression(self.self_expression).is_sparse else KEPT
        return self.truncate  # type: ignore[return-value]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
