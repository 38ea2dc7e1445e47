"""The spectral step past n x n: points are joined through the landmarks that express them."""

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from mercer.clustering.affinity import Matrix, indicator, modularity_of, unit_columns
from mercer.clustering.spectral import Spectrum
from mercer.landmarks import choose_landmarks
from mercer.linalg import top_eigenpairs

# All points express each other up to the first number, and the second number of landmarks express them past it.
MOST_POINTS, DEFAULT_LANDMARKS = 5000, 2000


def landmarks_of(
    rows: Tensor, n_landmarks: int | None, random: np.random.RandomState, working_memory: float
) -> np.ndarray | None:
    """Return which rows are landmarks, as many as were asked for or usual; None if all rows are to express each other.

    Parameters
    ----------
    rows : tensor of shape (n, d)
    n_landmarks : int or None
    random : RandomState
    working_memory : float
        MiB.
    """
    n = len(rows)
    wanted = (n if n <= MOST_POINTS else DEFAULT_LANDMARKS) if n_landmarks is None else n_landmarks
    if wanted >= n:
        return None
    return choose_landmarks(rows.numpy(), wanted, "kmeans++", random_state=random, working_memory=working_memory)


def landmark_weights(C: Matrix) -> sparse.csr_array:
    """Return Z of shape (n, m): absolute coefficients of each point in the landmarks, summing to 1."""
    Z = sparse.csr_array(unit_columns(C).T)
    sums = np.asarray(Z.sum(axis=1)).ravel()
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)
    return sparse.csr_array(Z.multiply(scale[:, None]))


def landmark_spectrum(Z: sparse.csr_array, n_values: int) -> Spectrum:
    """Return the smallest eigenpairs of the Laplacian of W = Z diag(Z^T 1)^-1 Z^T.

    Points that share landmarks are near. Rows of W sum to 1, so that its eigenvectors are the left singular vectors of
    Z diag(Z^T 1)^-1/2, which the (m, m) matrix of inner products gives (Chen and Cai 2011).

    Parameters
    ----------
    Z : sparse matrix of shape (n, m)
        Rows sum to 1, or are zero.
    n_values : int

    Notes
    -----
    O(n s^2 + m^3) for s landmarks a point.
    """
    scaled = _scaled(Z)
    products = np.asarray((scaled.T @ scaled).todense())
    pairs = top_eigenpairs(torch.from_numpy(products), min(n_values, Z.shape[1]))
    kept = pairs.values.numpy() > 1e-12
    values, V = pairs.values.numpy()[kept], pairs.vectors.numpy()[:, kept]
    vectors = (scaled @ V) / np.sqrt(values)
    return Spectrum(np.clip(1.0 - values, 0.0, 1.0), vectors, int(np.sum(values > 1.0 - 1e-9)))


def landmark_modularity(Z: sparse.csr_array, labels: np.ndarray) -> float:
    """Return the modularity of clusters in W = Z diag(Z^T 1)^-1 Z^T, as `modularity` would."""
    members = indicator(labels)
    inside = np.square(_scaled(Z).T @ members).sum(axis=0)
    return modularity_of(inside, np.asarray(Z.sum(axis=1)).ravel() @ members)


def _scaled(Z: sparse.csr_array) -> sparse.csr_array:
    """Return Z diag(Z^T 1)^-1/2."""
    masses = np.asarray(Z.sum(axis=0)).ravel()
    root = np.divide(1.0, np.sqrt(masses), out=np.zeros_like(masses), where=masses > 0)
    return sparse.csr_array(Z.multiply(root))
