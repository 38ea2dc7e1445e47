"""Clusters of clusters, and parts of them: a tree that can be cut at any number of clusters."""

from typing import NamedTuple

import numpy as np

from mercer.checks import check_count
from mercer.clustering.affinity import indicator
from mercer.clustering.spectral import assign, laplacian_spectrum

# Into how many parts a cluster falls at the finest cut, at most; a part has so many points at least.
PARTS, LEAST_POINTS = 4, 5


class ClusterTree(NamedTuple):
    """The finest parts of clusters, and the order in which they join.

    Attributes
    ----------
    parts : ndarray of shape (n,)
        The part of each point, from 0 to l - 1.
    merges : ndarray of shape (l - 1, 2)
        Row i has the two that join in step i to l + i; numbers below l are parts.
    """

    parts: np.ndarray
    merges: np.ndarray

    def cut(self, n_clusters: int) -> np.ndarray:
        """Return the cluster of each part where there are `n_clusters`, numbered by their first part.

        Cuts are nested: each cluster of a finer one lies in one of a coarser one.
        """
        n_parts = len(self.merges) + 1
        n_clusters = check_count("n_clusters", n_clusters, at_most=n_parts, why="the parts of the tree")
        owner = np.arange(n_parts)
        for step, pair in enumerate(self.merges[: n_parts - n_clusters]):
            owner[np.isin(owner, pair)] = n_parts + step
        _, first, numbers = np.unique(owner, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[numbers]


def cluster_tree(W: np.ndarray, labels: np.ndarray, seed: int) -> ClusterTree:
    """Build a tree whose cut at the number of clusters is the clusters themselves.

    Below, each cluster is cut into parts by the eigenvectors of its own block of the affinity. Of two that may join,
    those with the largest mean affinity between their points do so first: parts of one cluster before clusters.

    Parameters
    ----------
    W : ndarray of shape (n, n)
        Symmetric, nowhere negative.
    labels : ndarray of shape (n,)
        Clusters, numbered from 0.
    seed : int

    Notes
    -----
    O(n^2) and O(n_c^3) for each cluster of n_c points; O(l^3) for l parts.
    """
    parts, homes = np.empty(len(labels), dtype=np.int64), list[int]()
    for cluster in np.unique(labels):
        members = np.flatnonzero(labels == cluster)
        inside = _parts_of(W[np.ix_(members, members)], seed)
        parts[members] = inside + len(homes)
        homes += [cluster] * (int(inside.max()) + 1)
    members = indicator(parts)
    return ClusterTree(parts, _merges(members.T @ W @ members, members.sum(axis=0), np.array(homes)))


def _parts_of(W: np.ndarray, seed: int) -> np.ndarray:
    """Return the parts of one cluster, numbered from 0 without gaps."""
    count = min(PARTS, len(W) // LEAST_POINTS)
    if count < 2:
        return np.zeros(len(W), dtype=np.int64)
    spectrum = laplacian_spectrum(W, count, np.random.RandomState(seed))
    return np.unique(assign(spectrum, count, random=np.random.RandomState(seed)), return_inverse=True)[1]


def _merges(sums: np.ndarray, sizes: np.ndarray, homes: np.ndarray) -> np.ndarray:
    """Return who joins whom, by the largest mean affinity; those of one home before others."""
    sums, sizes, homes = sums.copy(), sizes.copy(), homes.copy()
    n_parts, names, merges = len(sizes), np.arange(len(sizes)), []
    for step in range(n_parts - 1):
        means = sums / np.outer(sizes, sizes)
        same = homes[:, None] == homes
        np.fill_diagonal(same, False)
        allowed = same if same.any() else ~np.eye(len(sizes), dtype=bool)
        a, b = np.unravel_index(np.argmax(np.where(allowed, means, -np.inf)), means.shape)
        merges.append((names[a], names[b]))
        # The second goes up in the first.
        sums[a] += sums[b]
        sums[:, a] += sums[:, b]
        sizes[a] += sizes[b]
        names[a] = n_parts + step
        keep = np.arange(len(sizes)) != b
        sums, sizes, homes, names = sums[np.ix_(keep, keep)], sizes[keep], homes[keep], names[keep]
    return np.array(merges, dtype=np.int64).reshape(-1, 2)
