"""Which points belong together: doubly stochastic memberships of codes on the sphere, and how sharp they should be."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from sklearn.metrics import adjusted_rand_score
from torch import Tensor

from mercer.clustering.manifold.shortest_code import k_means_labels, rate_reduction, with_shorter_code
from mercer.clustering.spectral import assign, laplacian_spectrum
from mercer.sinkhorn import doubly_stochastic

AFFINITIES = ("squared", "inner")
# Runs of k-means whose clusters are shortened beside those of the memberships: so many, or as many as make so many
# clusters in all, since a round costs as much for each.
MOST_BEGINNINGS, LEAST_BEGINNINGS, CLUSTERS_OF_ALL = 50, 5, 500


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
    reduction : float
        R - R_c of them; see `mercer.clustering.manifold.shortest_code.rate_reduction`.
    eta : float
        Of the membership.
    C : tensor of shape (n, d)
        The codes.
    P : tensor of shape (n, n)
        Their membership.
    eigenvalues : ndarray
        The smallest of the Laplacian of Π.
    """

    labels: np.ndarray
    reduction: float
    eta: float
    C: Tensor
    P: Tensor
    eigenvalues: np.ndarray


class Judge(NamedTuple):
    """Features by which clusters are compared, and ε of their rates.

    Attributes
    ----------
    Z : tensor of shape (n, d)
    epsilon : float
    """

    Z: Tensor
    epsilon: float

    def reduction(self, labels: np.ndarray) -> float:
        """Return R - R_c of clusters."""
        return rate_reduction(self.Z, labels, self.epsilon)

    def shortened(self, labels: np.ndarray) -> np.ndarray:
        """Return clusters of no smaller R - R_c, beginning with some."""
        return with_shorter_code(self.Z, labels, self.epsilon)


def spectral_clusters(C: Tensor, n_clusters: int, eta: float, affinity: str, seed: int, judge: Judge) -> Clustered:
    """Cluster codes by the eigenvectors of their membership (line 10 of Algorithm 1).

    Parameters
    ----------
    C : tensor of shape (n, d)
    n_clusters : int
    eta : float
    affinity : {"squared", "inner"}
    seed : int
    judge : Judge

    Notes
    -----
    O(n^3) time for the eigenvectors, O(n^2) memory.
    """
    P = membership(C, eta, affinity)
    W = P.cpu().double().numpy()
    spectrum = laplacian_spectrum((W + W.T) / 2.0, n_clusters + 1, np.random.RandomState(seed))
    labels = assign(spectrum, n_clusters, random=np.random.RandomState(seed)).astype(np.int64)
    return Clustered(labels, judge.reduction(labels), eta, C, P, spectrum.eigenvalues)


def best_spectral(
    C: Tensor, n_clusters: int, etas: Sequence[float], affinity: str, seed: int, judge: Judge
) -> Clustered:
    """Cluster codes at every η, and return the clusters of largest R - R_c."""
    found = [spectral_clusters(C, n_clusters, eta, affinity, seed, judge) for eta in etas]
    return max(found, key=lambda clusters: clusters.reduction)


def best_shortened(
    C: Tensor, n_clusters: int, etas: Sequence[float], affinity: str, seed: int, judge: Judge
) -> Clustered:
    """Return clusters of the largest R - R_c that is found from those at every η, and from k-means of the codes.

    The membership is the one whose own clusters, by its eigenvectors, are most like them: new points vote by it.
    """
    found = [spectral_clusters(C, n_clusters, eta, affinity, seed, judge) for eta in etas]
    beginnings = [clusters.labels for clusters in found]
    beginnings += k_means_labels(C, n_clusters, number_of_beginnings(n_clusters), seed)
    # Of equal codes k-means makes fewer clusters than were asked for.
    counts = [len(np.unique(labels)) for labels in beginnings]
    beginnings = [labels for labels, count in zip(beginnings, counts, strict=True) if count == max(counts)]
    labels = max((judge.shortened(labels) for labels in beginnings), key=judge.reduction)
    nearest = max(found, key=lambda clusters: adjusted_rand_score(labels, clusters.labels))
    return nearest._replace(labels=labels, reduction=judge.reduction(labels))


def number_of_beginnings(n_clusters: int) -> int:
    """Return how many runs of k-means are begun with."""
    return max(LEAST_BEGINNINGS, min(MOST_BEGINNINGS, CLUSTERS_OF_ALL // n_clusters))


CLUSTERINGS = {"rate": best_shortened, "spectral": best_spectral}
