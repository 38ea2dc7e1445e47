"""Nyström features: the feature map of a kernel, restricted to the span of m landmarks."""

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

    U_h Λ_h U_h^T are the leading h eigenvalues and eigenvectors of the kernel matrix K_mm of m landmarks. The features
    are therefore the kernel principal components of the landmarks, extended to any row (krepes, section 3.1). If every
    row is a landmark, the approximation is exact.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="gaussian"
        The kernel: "gaussian", "laplace", "matern32", "matern52", "polynomial", "linear", a kernel object, a function
        of two sets of rows, or "precomputed". With "precomputed", X is the (n, n) kernel matrix in `fit`, and the
        kernel matrix between new rows and those of `fit` in `transform`. Alternatively X has shape (n, m) in both and
        holds the kernel values of rows with m landmarks; in `fit` the landmarks themselves are then the first rows.
    n_landmarks : int or None, default=None
        m, the number of landmarks. None takes 1000, or all rows if there are fewer.
    n_components : int or None, default=None
        h, the number of features, at most m. None keeps all. Directions whose eigenvalue is numerically zero are left
        out.
    landmarks : {"uniform", "kmeans++", "leverage", "leverage_hutchinson"} or array, default="uniform"
        How landmarks are drawn from the rows: with equal probabilities, far from each other, or by one of two estimates
        of the kernel's ridge leverage scores, of which the first is faster (see `mercer.landmarks.choose_landmarks`).
        An array holds the landmarks themselves, of shape (m, d), or the indices of rows, of shape (m,); it replaces
        `n_landmarks`.
    bandwidth : float, "median" or None, default=None
        The bandwidth, which replaces that of the kernel. None keeps the bandwidth of the kernel.
    random_state : int, RandomState instance or None, default=None
        Determines the landmarks, and the rows whose median distance is the bandwidth.
    working_memory : float, default=64.0
        Memory for the temporary arrays of one block of rows, in MiB.
    device : str, torch.device or None, default=None
        The device of the computations. None is the CPU.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel, with a number for the bandwidth; None if precomputed.
    landmarks_ : ndarray of shape (m, d)
        The landmarks.
    landmark_indices_ : ndarray of shape (m,)
        The rows of `fit` that are landmarks; None if the landmarks themselves were given.
    coefficients_ : ndarray of shape (m, h)
        The matrix U_h Λ_h^-1/2, by which kernel values are multiplied.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,), where X had names

    Notes
    -----
    `fit` takes O(m^2 d + m^3) time in addition to the choice of the landmarks. `transform` takes O(n m (d + h)), in
    blocks of rows.

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
            # Other methods resolve the kernel after drawing landmarks, since both use the same random numbers.
            kernel = kernel.resolved(X, random)
        landmarks, indices = self._chosen(X, kernel, random)
        if kernel is None:
            K_mm = as_tensor(landmarks[:, indices])
        else:
            kernel = kernel.resolved(X, random)
            # The inverse root amplifies small eigenvalues, so K_mm is computed in float64 whatever the dtype of X is.
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
        """Return the kernel: None if X is the kernel matrix of all rows, and a `Precomputed` one if X is K_nm."""
        if not self._is_precomputed():
            return check_kernel(self.kernel, self.bandwidth)
        return None if X.shape[0] == X.shape[1] else Precomputed().resolved(X)

    def _chosen(
        self, X: np.ndarray, kernel: Kernel | None, random: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the landmarks and the indices of their rows; if X is K_nm, these are the first rows."""
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
