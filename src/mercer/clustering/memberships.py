"""Which points belong together: doubly stochastic memberships of codes on the sphere, and how sharp they should be."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.clustering.affinity import modularity
from mercer.clustering.spectral import assign, laplacian_spectrum
from mercer.losses import mcr2
from mercer.sinkhorn import doubly_stochastic

AFFINITIES = ("squared", "inner")


def log_affinity(C: Tensor, other: Tensor, eta: float, affinity: str) -> Tensor:
    """Return C C'^T / η, or its entries' squares over η: what the projection onto doubly stochastic matrices scales.

    Parameters
    ----------
    C, other : tensors of shape (n, d) and (m, d)
        Codes, rows of length 1.
    eta : float
        η: small ones make memberships sharp.
    affinity : {"squared", "inner"}
        "squared" takes points along one line, of either sign, for alike, which is what subspaces ask for; "inner" is
        the paper's.
    """
    S = C @ other.T
    return (S * S if affinity == "squared" else S) / eta


def membership(C: Tensor, eta: float, affinity: str) -> Tensor:
    """Return Π of shape (n, n), the doubly stochastic matrix of codes (section 2.3); arguments as in `log_affinity`."""
    return doubly_stochastic(log_affinity(C, C, eta, affinity))


def scales(P: Tensor, eta: float) -> Tensor:
    """Return log u of shape (n,), with Π_ij = u_i exp(A_ij) u_j, from the diagonal, where A is 1 / η."""
    return (P.diagonal().log() - 1.0 / eta) / 2.0


def memberships_of(C_new: Tensor, C: Tensor, log_u: Tensor, eta: float, affinity: str) -> Tensor:
    """Return the memberships of new points to those of the fit, of shape (n_new, n), with rows that sum to 1.

    exp(A_ij) u_j, scaled to a sum of 1, is row i of Π for the points of the fit themselves: for others it is what the
    row would be if the scales of the fit stayed as they are.
    """
    return torch.softmax(log_affinity(C_new, C, eta, affinity) + log_u, dim=1)


class Clustered(NamedTuple):
    """Clusters of codes.

    Attributes
    ----------
    labels : ndarray of shape (n,)
    eta : float
    modularity : float
        How well they fit their membership; see `mercer.clustering.affinity.modularity`.
    C : tensor of shape (n, d)
        The codes.
    P : tensor of shape (n, n)
        Their membership.
    eigenvalues : ndarray
        The smallest of the Laplacian of Π.
    """

    labels: np.ndarray
    eta: float
    modularity: float
    C: Tensor
    P: Tensor
    eigenvalues: np.ndarray


def clustered(C: Tensor, n_clusters: int, eta: float, affinity: str, seed: int) -> Clustered:
    """Cluster codes by the eigenvectors of their membership (line 10 of Algorithm 1).

    Parameters
    ----------
    C : tensor of shape (n, d)
    n_clusters : int
    eta : float
    affinity : {"squared", "inner"}
    seed : int

    Notes
    -----
    O(n^3) time for the eigenvectors, O(n^2) memory.
    """
    P = membership(C, eta, affinity)
    W = P.cpu().double().numpy()
    W = (W + W.T) / 2.0
    spectrum = laplacian_spectrum(W, n_clusters + 1, np.random.RandomState(seed))
    labels = assign(spectrum, n_clusters, random=np.random.RandomState(seed))
    return Clustered(labels, eta, modularity(W, labels), C, P, spectrum.eigenvalues)


def by_modularity(C: Tensor, n_clusters: int, etas: Sequence[float], affinity: str, seed: int) -> list[Clustered]:
    """Cluster codes at every η; the one whose clusters fit their membership best, by modularity, comes first.

    A large η spreads memberships over all points and has a small modularity. A small one cuts the points into more
    pieces than there are clusters, and the pieces are put together at random: that has a small one too.
    """
    found = [clustered(C, n_clusters, eta, affinity, seed) for eta in etas]
    return sorted(found, key=lambda candidate: -candidate.modularity)


def rate_reduction(Z: Tensor, labels: np.ndarray, epsilon: float) -> float:
    """Return R - R_c of clusters: how much shorter a code features have cluster by cluster than all together.

    Parameters
    ----------
    Z : tensor of shape (n, d)
        Features. To compare clusters of several trainings they must be the same for all.
    labels : ndarray of shape (n,)
    epsilon : float
        ε of the rates; see `mercer.losses.mcr2`.
    """
    return -float(mcr2(Z.cpu().double(), torch.from_numpy(labels), epsilon=epsilon))
