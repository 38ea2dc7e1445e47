"""Spectral clustering without an (n, n) matrix: points are linked through the landmarks that express them."""

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from mercer.clustering.affinity import Matrix, indicator, modularity_of, unit_columns
from mercer.clustering.spectral import Spectrum
from mercer.landmarks import choose_landmarks
from mercer.linalg import top_eigenpairs

# Up to this many points express each other. More points are expressed by this many landmarks.
MOST_POINTS, DEFAULT_LANDMARKS = 5000, 2000
# Eigenvalues of W up to the first number are zero except for rounding; those within the second one of 1 equal 1.
ZERO, NEAR_ONE = 1e-12, 1e-9


def landmarks_of(
    rows: Tensor, n_landmarks: int | None, random: np.random.RandomState, working_memory: float
) -> np.ndarray | None:
    """Return the numbers of the rows that are landmarks, or None if all rows express each other.

    Parameters
    ----------
    rows : tensor of shape (n, d)
    n_landmarks : int or None
        The number of landmarks. None takes 2000 of them if there are more than 5000 rows.
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
    """Return Z of shape (n, m): the absolute coefficients that express each point by landmarks, scaled to sum to 1."""
    Z = sparse.csr_array(unit_columns(C).T)
    sums = np.asarray(Z.sum(axis=1)).ravel()
    scale = np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)
    return sparse.csr_array(Z.multiply(scale[:, None]))


def landmark_spectrum(Z: sparse.csr_array, n_values: int) -> Spectrum:
    """Return the smallest eigenpairs of the Laplacian of W = Z diag(Z^T 1)^-1 Z^T.

    Points have a large affinity in W if they share landmarks. The rows of W sum to 1. Its eigenvectors are therefore
    the left singular vectors of Z diag(Z^T 1)^-1/2, which follow from the (m, m) matrix of inner products of its
    columns (Chen and Cai 2011).

    Parameters
    ----------
    Z : sparse matrix of shape (n, m)
        Each row sums to 1 or is zero.
    n_values : int
        The number of eigenpairs; there may be fewer.

    Notes
    -----
    O(n s^2 + m^3) time if each point is expressed by s landmarks.
    """
    scaled = _scaled(Z)
    products = np.asarray((scaled.T @ scaled).todense())
    pairs = top_eigenpairs(torch.from_numpy(products), min(n_values, Z.shape[1]))
    kept = pairs.values.numpy() > ZERO
    values, V = pairs.values.numpy()[kept], pairs.vectors.numpy()[:, kept]
    vectors = (scaled @ V) / np.sqrt(values)
    return Spectrum(np.clip(1.0 - values, 0.0, 1.0), vectors, int(np.sum(values > 1.0 - NEAR_ONE)))


def landmark_modularity(Z: sparse.csr_array, labels: np.ndarray) -> float:
    """Return the modularity of clusters in W = Z diag(Z^T 1)^-1 Z^T, without forming W."""
    members = indicator(labels)
    inside = np.square(_scaled(Z).T @ members).sum(axis=0)
    return modularity_of(inside, np.asarray(Z.sum(axis=1)).ravel() @ members)


def _scaled(Z: sparse.csr_array) -> sparse.csr_array:
    """Return Z diag(Z^T 1)^-1/2."""
    masses = np.asarray(Z.sum(axis=0)).ravel()
    root = np.divide(1.0, np.sqrt(masses), out=np.zeros_like(masses), where=masses > 0)
    return sparse.csr_array(Z.multiply(root))
