"""Which clusters are kept: those whose features have the shortest code, of memberships at several η and of k-means."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score
from torch import Tensor

from mercer.clustering.manifold.memberships import Memberships, SpectralClusters, spectral_clusters
from mercer.clustering.manifold.shortest_code import (
    coding_costs,
    k_means_labels,
    rate_reduction,
    shortest,
)

# Runs of k-means whose clusters are shortened beside those of the memberships: so many, or as many as make so many
# clusters in all, since a round costs as much for each.
MOST_BEGINNINGS, LEAST_BEGINNINGS, CLUSTERS_OF_ALL = 50, 5, 500
# Beginnings are clusters of at most so many rows: the others join where they cost the least.
BEGINNING_ROWS = 1000


class Clustered(NamedTuple):
    """Clusters of codes.

    Attributes
    ----------
    labels : ndarray of shape (n,)
    reduction : float
        R - R_c of them; see `mercer.clustering.manifold.shortest_code.rate_reduction`.
    C : tensor of shape (n, d)
        The codes.
    spectral : SpectralClusters
        Of the membership by which new points vote.
    """

    labels: np.ndarray
    reduction: float
    C: Tensor
    spectral: SpectralClusters


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


def best_spectral(C: Tensor, n_clusters: int, candidates: Sequence[Memberships], seed: int, judge: Judge) -> Clustered:
    """Cluster codes by each of some memberships, and return the clusters of largest R - R_c.

    Parameters
    ----------
    C : tensor of shape (n, d)
    n_clusters : int
    candidates : sequence of Memberships
        With one, this is line 10 of Algorithm 1.
    seed : int
    judge : Judge
    """
    found = [spectral_clusters(C, n_clusters, one, seed) for one in candidates]
    best = max(found, key=lambda clusters: judge.reduction(clusters.labels))
    return Clustered(best.labels, judge.reduction(best.labels), C, best)


def best_shortened(C: Tensor, n_clusters: int, candidates: Sequence[Memberships], seed: int, judge: Judge) -> Clustered:
    """Return clusters of the largest R - R_c found from those of each membership, and from k-means of the codes.

    The membership is the one whose own clusters, by its eigenvectors, are most like them: new points vote by it.
    Parameters are those of `best_spectral`.
    """
    some = np.sort(np.random.RandomState(seed).permutation(len(C))[:BEGINNING_ROWS])
    found = [spectral_clusters(C[some], n_clusters, one, seed) for one in candidates]
    beginnings = [clusters.labels for clusters in found]
    beginnings += k_means_labels(C[some], n_clusters, number_of_beginnings(n_clusters), seed)
    # Of equal codes k-means makes fewer clusters than were asked for.
    counts = [len(np.unique(labels)) for labels in beginnings]
    beginnings = [labels for labels, count in zip(beginnings, counts, strict=True) if count == max(counts)]
    labels = shortest(judge.Z, [joined(judge, labels, some) for labels in beginnings], judge.epsilon)
    nearest = max(found, key=lambda clusters: adjusted_rand_score(labels[some], clusters.labels))
    voted = nearest if len(some) == len(C) else spectral_clusters(C, n_clusters, nearest.memberships, seed)
    return Clustered(labels, judge.reduction(labels), C, voted)


def joined(judge: Judge, labels: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Return the clusters of all rows, given those of some: the others go where they cost the least."""
    if len(some) == len(judge.Z):
        return labels
    everyone = coding_costs(judge.Z[some], labels, judge.epsilon, judge.Z).argmin(axis=1)
    everyone[some] = labels
    return everyone


def number_of_beginnings(n_clusters: int) -> int:
    """Return how many runs of k-means are begun with."""
    return max(LEAST_BEGINNINGS, min(MOST_BEGINNINGS, CLUSTERS_OF_ALL // n_clusters))


CLUSTERINGS: dict[str, Callable[[Tensor, int, Sequence[Memberships], int, Judge], Clustered]] = {
    "rate": best_shortened,
    "spectral": best_spectral,
}
