"""What fitted subspaces say of new points: the coefficients by which points of the fit express them, and clusters."""

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

# How many coefficients of a point truncate="auto" keeps of those that are spread over all points.
KEPT = 6


class SubspacePredictions(ClusterMixin, BaseEstimator):
    """Clusters of new points by those that express them; `SubspaceClustering` fits them."""

    # Parameters and what a fit publishes.
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
        """Return the cluster of new points: that of the points which express them most.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n,)
            The cluster with the largest sum of absolute coefficients; a point that nothing expresses, such as a row of
            zeros, goes to the largest cluster.
        """
        return voted_labels(self.expressed(X), self.labels_[self.landmark_indices_], self.labels_)

    def expressed(self, X: Any) -> Any:
        """Return the coefficients by which points of the fit express new ones, of shape (m, n), sparse or dense.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        matrix of shape (m, n)
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
