"""The base class of embeddings on landmarks: it chooses the landmarks and checks the parameters for them."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from mercer.checks import check_count, check_number
from mercer.exceptions import DataWarning, ignored, invalid_parameter
from mercer.kernels import Kernel
from mercer.landmarks import METHODS, choose_landmarks
from mercer.landmarks.kernel_map import KernelMap

# The number of landmarks if n_landmarks=None and there are more rows.
DEFAULT_LANDMARKS = 1000


class LandmarkMap(KernelMap):
    """Base class of maps on landmarks, with the parameters `n_landmarks` and `landmarks`."""

    n_landmarks: int | None
    landmarks: Any

    def _landmarks(
        self, X: np.ndarray, kernel: Kernel | None, random: np.random.RandomState, usual: int = DEFAULT_LANDMARKS
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the landmarks and their row indices in X, or None for the indices if the landmarks were given.

        If `n_landmarks` is None, there are at most `usual` landmarks.
        """
        if not isinstance(self.landmarks, str):
            return self._given_landmarks(X, kernel)
        wanted = min(len(X), usual) if self.n_landmarks is None else self.n_landmarks
        if self.n_landmarks is None:
            # The number is a default, so no warning is needed if duplicate rows leave fewer landmarks.
            with ignored(DataWarning):
                indices = self._choose(X, kernel, wanted, random)
        else:
            indices = self._choose(X, kernel, wanted, random)
        return X[indices], indices

    def _choose(self, X: np.ndarray, kernel: Kernel | None, wanted: int, random: np.random.RandomState) -> np.ndarray:
        """Draw `wanted` landmarks by the method that `landmarks` names, and return their row indices."""
        metric = None if kernel is None else kernel.common_metric()
        return choose_landmarks(
            X,
            wanted,
            self.landmarks,
            metric=metric,
            kernel=kernel,
            random_state=random,
            working_memory=self.working_memory,
        )

    def _given_landmarks(self, X: np.ndarray, kernel: Kernel | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the landmarks of the parameter `landmarks`: rows of X by their indices, or an array of landmarks."""
        given = np.asarray(self.landmarks)
        if given.ndim == 1 and np.issubdtype(given.dtype, np.integer):
            if len(given) == 0 or given.min() < 0 or given.max() >= len(X):
                raise invalid_parameter("landmarks", self.landmarks, f"row indices from 0 to {len(X) - 1}")
            return X[given], given
        if kernel is None:
            raise invalid_parameter("landmarks", self.landmarks, "'uniform' or row indices if kernel='precomputed'")
        given = check_array(given, dtype=X.dtype, input_name="landmarks")
        if given.shape[1] != X.shape[1]:
            raise invalid_parameter(
                "landmarks", f"array of shape {given.shape}", f"of shape (m, {X.shape[1]}), with the columns of X"
            )
        return given.copy(), None

    def _check_landmark_parameters(self) -> None:
        check_number("working_memory", self.working_memory, above=0.0)
        if self.n_landmarks is not None:
            check_count("n_landmarks", self.n_landmarks)
        if isinstance(self.landmarks, str) and self.landmarks not in METHODS:
            raise invalid_parameter("landmarks", self.landmarks, METHODS, "An array of landmarks is accepted too.")
