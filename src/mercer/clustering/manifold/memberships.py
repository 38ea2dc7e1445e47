"""Which points belong together: doubly stochastic memberships of codes on the sphere, and their spectral clusters."""

from typing import NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from mercer.clustering.manifold.projections import PROJECTIONS, Projection
from mercer.clustering.spectral import Spectrum, assign, laplacian_spectrum
from mercer.linalg import lanczos_eigenpairs, threads_for

AFFINITIES = ("squared", "inner")
# Up to so many points eigenvectors are found by a dense decomposition.
FEW_POINTS = 500
# Of the eigenvalues of a membership: clusters need no more.
SPECTRUM_TOLERANCE = 1e-4


class Memberships(NamedTuple):
    """How codes become memberships.

    Attributes
    ----------
    eta : float
        η: small ones make memberships sharp.
    affinity : {"squared", "inner"}
        "squared" takes points along one line, of either sign, for alike, which is what subspaces ask for; "inner" is
        the paper's.
    projection : {"entropy", "squares"}
        See `mercer.clustering.manifold.projections`.
    """

    eta: float
    affinity: str = "squared"
    projection: str = "entropy"

    @property
    def onto(self) -> Projection:
        """The projection itself."""
        return PROJECTIONS[self.projection]

    def similarities(self, C: Tensor, other: Tensor) -> Tensor:
        """Return C C'^T, or its entries' squares; codes are rows of length 1."""
        S = C @ other.T
        return S * S if self.affinity == "squared" else S

    def of(self, C: Tensor) -> Tensor:
        """Return Π of shape (n, n), the doubly stochastic matrix of codes (section 2.3)."""
        return self.onto.matrix(self.similarities(C, C), self.eta)

    def potentials(self, C: Tensor, P: Tensor) -> Tensor:
        """Return what makes rows of memberships of new points, of shape (n,), from codes and their Π."""
        return self.onto.potentials(self.similarities(C, C), P, self.eta)

    def rows(self, C_new: Tensor, C: Tensor, potentials: Tensor) -> Tensor:
        """Return the memberships of new points to those of the fit, of shape (n_new, n), with rows that sum to 1.

        For points of the fit they are rows of Π; for others, what the row would be if the potentials stayed as they
        are.
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
        The smallest of the Laplacian of Π.
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
    Some hundred products with Π, O(n^2) each; O(n^2) memory.
    """
    with threads_for(len(C)):
        P = memberships.of(C)
        spectrum = membership_spectrum(P, n_clusters + 1, seed)
        labels = assign(spectrum, n_clusters, random=np.random.RandomState(seed)).astype(np.int64)
    return SpectralClusters(labels, memberships, P, spectrum.eigenvalues)


def membership_spectrum(P: Tensor, n_values: int, seed: int) -> Spectrum:
    """Return the smallest eigenpairs of the Laplacian of a membership, I - Π: its rows sum to 1.

    Parameters
    ----------
    P : tensor of shape (n, n)
        Doubly stochastic. Where it has zeros its graph may be in parts, and is taken as a sparse one.
    n_values : int
    seed : int
        Draws the first vector of the Lanczos steps.
    """
    random = np.random.RandomState(seed)
    n = len(P)
    if n <= FEW_POINTS or bool((P == 0).any()):
        W = P.cpu().double().numpy()
        W = (W + W.T) / 2.0
        return laplacian_spectrum(W if n <= FEW_POINTS else sparse.csr_array(W), n_values, random)
    # Single precision, as fast again: an eigenvector is wanted to see clusters by, not to the last digit.
    P = P.float()
    start = torch.from_numpy(random.uniform(-1.0, 1.0, n)).to(P)
    pairs = lanczos_eigenpairs(lambda V: P @ V, start, n_values, SPECTRUM_TOLERANCE)
    values, vectors = (part.cpu().double().numpy() for part in pairs)
    return Spectrum(np.clip(1.0 - values, 0.0, 2.0), vectors, 1)
