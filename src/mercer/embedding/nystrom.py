"""Nyström features: the kernel's own feature map, restricted to m landmarks."""

from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.blocks import WORKING_MEMORY, as_tensor
from mercer.checks import all_or_nothing, check_count, refuse_sparse
from mercer.embedding.landmark_map import LandmarkMap
from mercer.exceptions import DataWarning, invalid_parameter, warn_user
from mercer.kernels import Kernel, Precomputed, check_kernel
from mercer.landmarks import KERNEL_METHODS
from mercer.landmarks.features import principal_coefficients
from mercer.rows import validated_rows, wherever_rows_are


class Nystrom(LandmarkMap):
    """Map rows to features whose inner products approximate a kernel: K ≈ Φ Φ^T with Φ = K_nm U_h Λ_h^-1/2.

    U_h Λ_h U_h^T is the leading part of the kernel matrix K_mm of m landmarks, so that the features are the
    kernel principal components of the landmarks, extended to any row (krepes, section 3.1). With every row a
    landmark the approximation is exact.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        "gaussian", "laplace", "matern32", "matern52", "polynomial", "linear", a kernel object, a function of two
        sets of rows, or "precomputed": X is then the (n, n) kernel matrix in `fit`, and the kernel matrix between
        new rows and those of `fit` in `transform`; or both are the values of rows with m landmarks, (n, m), and those
        of the landmarks themselves come first in `fit`.
    n_landmarks : int or None, default=None
        m. None takes 1000, or all rows if there are fewer.
    n_components : int or None, default=None
        h, at most m; None keeps all. Directions without numerical content are left out.
    landmarks : {"uniform", "kmeans++", "leverage", "leverage_hutchinson"} or array, default="uniform"
        How landmarks are drawn from the rows: with equal chances, far from each other, or by the kernel's ridge
        leverage scores, in two estimates (`mercer.landmarks.choose_landmarks`; the first is the quicker one); or the
        landmarks themselves, of shape (m, d); or the indices of rows, of shape (m,). In place of `n_landmarks`, if an
        array.
    bandwidth : float, "median" or None, default=None
        Takes the place of the kernel's own bandwidth.
    random_state : int, RandomState instance or None, default=None
        Draws the landmarks, and the rows whose median distance is the bandwidth.
    working_memory : float, default=64.0
        MiB for the temporaries of one block of rows.
    device : str, torch.device or None, default=None
        Where the work is done; None is the CPU.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, with a number for the bandwidth; None if precomputed.
    landmarks_ : ndarray of shape (m, d)
    landmark_indices_ : ndarray of shape (m,)
        The rows of `fit` that are landmarks, unless the landmarks themselves were given.
    coefficients_ : ndarray of shape (m, h)
        U_h Λ_h^-1/2.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X had names

    Notes
    -----
    `fit` costs O(m^2 d + m^3) beside the choice of the landmarks, `transform` O(n m (d + h)) by row blocks.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from mercer import Nystrom
    >>> X, _ = load_digits(return_X_y=True)
    >>> Nystrom(n_landmarks=200, n_components=50, random_state=0).fit_transform(X).shape
    (1797, 50)
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        n_landmarks: int | None = None,
        n_components: int | None = None,
        landmarks: Any = "uniform",
        bandwidth: float | str | None = None,
        random_state: Any = None,
        working_memory: float = WORKING_MEMORY,
        device: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.n_components = n_components
        self.landmarks = landmarks
        self.bandwidth = bandwidth
        self.random_state = random_state
        self.working_memory = working_memory
        self.device = device

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> "Nystrom":
        """Choose the landmarks of X and decompose their kernel matrix.

        Parameters
        ----------
        X : array-like of shape (n, d), or rows of files or of Dask (`mercer.rows`)
        y : ignored

        Returns
        -------
        self
        """
        refuse_sparse(self, X)
        X = validated_rows(self, X)
        self._check_parameters(X)
        random = check_random_state(self.random_state)
        kernel = self._asked_kernel(X)
        if kernel is not None and isinstance(self.landmarks, str) and self.landmarks in KERNEL_METHODS:
            # Else after the landmarks: the rows of the median are drawn by the same random numbers.
            kernel = kernel.resolved(X, random)
        landmarks, indices = self._chosen(X, kernel, random)
        if kernel is None:
            K_mm = as_tensor(landmarks[:, indices])
        else:
            kernel = kernel.resolved(X, random)
            # Small eigenvalues are what the inverse root amplifies, so K_mm has all digits whatever X has.
            K_mm = kernel.matrix(as_tensor(landmarks, dtype=torch.float64, device=self.device))
        coefficients = principal_coefficients(
            K_mm.to(torch.float64), self.n_components, precision=as_tensor(X[:0]).dtype
        )
        if coefficients.shape[1] == 0:
            raise ValueError("the kernel matrix of the landmarks is zero: X has no row with k(x, x) above 0.")
        if self.n_components is not None and coefficients.shape[1] < self.n_components:
            warn_user(
                f"n_components={self.n_components}, but the kernel matrix of the {len(landmarks)} landmarks has "
                f"numerical rank {coefficients.shape[1]}: {coefficients.shape[1]} components are kept.",
                DataWarning,
            )
        self.kernel_ = kernel
        self.landmarks_ = landmarks
        self.landmark_indices_ = indices
        self.coefficients_ = coefficients.cpu().numpy().astype(X.dtype)
        return self

    @wherever_rows_are
    def transform(self, X: Any) -> np.ndarray:
        """Return the features of each row, of shape (n, h).

        Parameters
        ----------
        X : array-like of shape (n, d)
            The kernel matrix between new rows and those of `fit`, if the kernel is precomputed.
        """
        check_is_fitted(self)
        return self._evaluate(X, self.landmarks_, columns=self.landmark_indices_)

    def _asked_kernel(self, X: np.ndarray) -> Kernel | None:
        """Return the kernel; None where X is the kernel matrix of all rows, and of K_nm the kernel of such rows."""
        if not self._is_precomputed():
            return check_kernel(self.kernel, self.bandwidth)
        return None if X.shape[0] == X.shape[1] else Precomputed().resolved(X)

    def _chosen(
        self, X: np.ndarray, kernel: Kernel | None, random: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the landmarks and which rows they are; of K_nm the first."""
        if self._is_precomputed() and kernel is not None:
            return X[: X.shape[1]], np.arange(X.shape[1])
        return self._landmarks(X, kernel, random)

    def _check_parameters(self, X: np.ndarray) -> None:
        self._check_landmark_parameters()
        if self.n_components is not None:
            check_count("n_components", self.n_components, at_most=self.n_landmarks, why="n_landmarks")
        self._check_precomputed(X, of_landmarks=True)
        if self._is_precomputed() and isinstance(self.landmarks, str) and self.landmarks != "uniform":
            raise invalid_parameter("landmarks", self.landmarks, "'uniform' or row indices if kernel='precomputed'")
