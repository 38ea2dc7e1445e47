"""The base class of estimators that learn a map x -> A^T k_x + bias on rows or landmarks: its evaluation and checks."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from mercer.blocks import Rows, as_tensor
from mercer.checks import PRECISIONS, finite_answers, validated
from mercer.exceptions import invalid_parameter
from mercer.landmarks.features import landmark_features


class KernelMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of transformers with the parameters `kernel`, `bandwidth`, `working_memory` and `device`.

    The `fit` of a subclass sets `kernel_` (None if the kernel is precomputed) and `coefficients_` of shape (m, h).
    """

    kernel: Any
    bandwidth: Any
    working_memory: float
    device: Any
    kernel_: Any
    coefficients_: np.ndarray

    @finite_answers
    def _evaluate(self, X: Any, basis: np.ndarray | None, columns: Any = slice(None), bias: Any = None) -> np.ndarray:
        """Return A^T k_x + bias for each row x, where k_x are its kernel values with the rows of `basis`.

        If the kernel is precomputed, k_x are the `columns` of the row in X.
        """
        check_is_fitted(self)
        X = validated(self, X, dtype=PRECISIONS, reset=False)
        if self.kernel_ is None:
            values = X[:, columns] @ self.coefficients_
            return values if bias is None else values + bias
        dtype = as_tensor(X[:0]).dtype
        Z, A, b = (
            None if part is None else as_tensor(part, dtype=dtype, device=self.device)
            for part in (basis, self.coefficients_, bias)
        )
        return landmark_features(self.kernel_, X, Z, A, b, working_memory=self.working_memory).cpu().numpy()  # type: ignore[arg-type]

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _check_precomputed(self, X: np.ndarray, of_landmarks: bool = False) -> None:
        """Raise if the kernel is precomputed and X is not a kernel matrix, or a bandwidth is given.

        With `of_landmarks`, X may also hold the values of n rows with m landmarks, which are the first m of the rows.
        """
        if not self._is_precomputed():
            return
        if isinstance(X, Rows):
            raise invalid_parameter("kernel", self.kernel, "a kernel of rows, where these are in files or with Dask")
        if self.bandwidth not in (None, "auto"):
            raise invalid_parameter("bandwidth", self.bandwidth, "None or 'auto' if kernel='precomputed'")
        if X.shape[0] < X.shape[1] or (X.shape[0] > X.shape[1] and not of_landmarks):
            other = ", or (n, m) with the m landmarks first" if of_landmarks else ""
            raise ValueError(
                f"kernel='precomputed', but X has shape {X.shape}: fit needs the square kernel matrix of the "
                f"rows{other}."
            )

    @property
    def _n_features_out(self) -> int:
        return self.coefficients_.shape[1]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
