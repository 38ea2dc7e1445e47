"""Doubly stochastic memberships, which say how much pairs of points belong together, and their spectral clusters."""

from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from mercer.clustering.manifold.projections import PROJECTIONS, Projection
from mercer.clustering.spectral import Spectrum, assign, laplacian_spectrum
from mercer.linalg import lanczos_eigenpairs, threads_for

AFFINITIES = ("squared", "inner")
# For up to this many points, eigenvectors are found by a dense decomposition.
FEW_POINTS = 500
# The relative accuracy of the eigenvalues of a membership, which suffices to find clusters.
SPECTRUM_TOLERANCE = 1e-4


class Memberships(NamedTuple):
    """The rule by which codes become memberships.

    Attributes
    ----------
    eta : float
        η. Small values make memberships sharp.
    affinity : {"squared", "inner"}
        "squared" treats points in opposite directions as similar, as is right for subspaces. "inner" is that of the
        paper.
    projection : {"entropy", "squares"}
        See `mercer.clustering.manifold.projections`.
    """

    eta: float
    affinity: str = "squared"
    projection: str = "entropy"

    @property
    def onto(self) -> Projection:
        """The projection as an object."""
        return PROJECTIONS[self.projection]

    def similarities(self, C: Tensor, other: Tensor) -> Tensor:
        """Return C C'^T, or the squares of its entries. Codes are rows of length 1."""
        S = C @ other.T
        return S * S if self.affinity == "squared" else S

    def of(self, C: Tensor) -> Tensor:
        """Return Π, the doubly stochastic membership of codes, of shape (n, n) (section 2.3)."""
        return self.onto.matrix(self.similarities(C, C), self.eta)

    def potentials(self, C: Tensor, P: Tensor) -> Tensor:
        """Return the potentials of codes with membership Π, of shape (n,), from which `rows` computes new rows."""
        return self.onto.potentials(self.similarities(C, C), P, self.eta)

    def rows(self, C_new: Tensor, C: Tensor, potentials: Tensor) -> Tensor:
        """Return the memberships of new points to those of the fit, of shape (n_new, n), with rows that sum to 1.

        For points of the fit these are rows of Π. For other points they are the rows that Π would have if the
        potentials did not change.
        """
        return self.onto.rows(self.similarities(C_new, C), potentials, self.eta)


class SpectralClusters(NamedTuple):
    """Clusters of codes by the eigenvectors of their membership.

    Attributes
    ----------
    labels : ndarray of shape (n,)
    memberships : Memberships
    P : tensor of shape (n, n)
        Π.
    eigenvalues : ndarray
        The smallest eigenvalues of the Laplacian of Π.
    """

    labels: np.ndarray
    memberships: Memberships
    P: Tensor
    eigenvalues: np.ndarray


def spectral_clusters(C: Tensor, n_clusters: int, memberships: Memberships, seed: int) -> SpectralClusters:
    """Cluster codes by the eigenvectors of their membership (line 10 of Algorithm 1).

    Parameters
    ----------
    C : tensor of shape (n, d)
    n_clusters : int
    memberships : Memberships
    seed : int

    Notes
    -----
    Some hundred products with Π of O(n^2) time each, and O(n^2) memory.
    """
    with threads_for(len(C)):
        P = memberships.of(C)
        spectrum = membership_spectrum(P, n_clusters + 1, seed)
        labels = assign(spectrum, n_clusters, random=np.random.RandomState(seed)).astype(np.int64)
    return SpectralClusters(labels, memberships, P, spectrum.eigenvalues)


def membership_spectrum(P: Tensor, n_values: int, seed: int) -> Spectrum:
    """Return the smallest eigenpairs of the Laplacian of a membership, which is I - Π since rows of Π sum to 1.

    Parameters
    ----------
    P : tensor of shape (n, n)
        The membership Π. If it has zeros, its graph may have several components, and it is treated as sparse.
    n_values : int
        The number of eigenpairs.
    seed : int
        Draws the first vector of the Lanczos steps.
    """
    random = np.random.RandomState(seed)
    n = len(P)
    if n <= FEW_POINTS or bool((P == 0).any()):
        W = P.cpu().double().numpy()
        W = (W + W.T) / 2.0
        return laplacian_spectrum(W if n <= FEW_POINTS else sparse.csr_array(W), n_values, random)
    # Single precision is twice as fast, and clusters do not need the last digits of an eigenvector.
    P = P.float()
    start = torch.from_numpy(random.uniform(-1.0, 1.0, n)).to(P)
    pairs = lanczos_eigenpairs(lambda V: P @ V, start, n_values, SPECTRUM_TOLERANCE)
    values, vectors = (part.cpu().double().numpy() for part in pairs)
    return Spectrum(np.clip(1.0 - values, 0.0, 2.0), vectors, 1)
