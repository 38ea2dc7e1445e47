"""A tree of nested clusters: given clusters, their parts and their unions, for any number of clusters."""

from typing import NamedTuple

import numpy as np

from mercer.checks import check_count
from mercer.clustering.affinity import indicator
from mercer.clustering.spectral import assign, laplacian_spectrum

# The largest number of parts of a cluster at the finest cut, and the mean number of points that a part needs.
PARTS, LEAST_POINTS = 4, 5


class ClusterTree(NamedTuple):
    """The finest parts of clusters, and the order in which they are merged.

    Attributes
    ----------
    parts : ndarray of shape (n,)
        The part of each point, from 0 to l - 1.
    merges : ndarray of shape (l - 1, 2)
        Row i has the two nodes that step i merges into node l + i. Nodes 0 to l - 1 are the parts.
    """

    parts: np.ndarray
    merges: np.ndarray

    def cut(self, n_clusters: int) -> np.ndarray:
        """Return the cluster of each part in the cut with `n_clusters`; clusters are numbered by their first part.

        Cuts are nested: each cluster of a finer cut lies in one cluster of a coarser cut.
        """
        n_parts = len(self.merges) + 1
        n_clusters = check_count("n_clusters", n_clusters, at_most=n_parts, why="the parts of the tree")
        owner = np.arange(n_parts)
        for step, pair in enumerate(self.merges[: n_parts - n_clusters]):
            owner[np.isin(owner, pair)] = n_parts + step
        _, first, numbers = np.unique(owner, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[numbers]


def cluster_tree(W: np.ndarray, labels: np.ndarray, seed: int) -> ClusterTree:
    """Build a tree over given clusters; its cut at their number returns these clusters.

    Each cluster is split into parts by the eigenvectors of its own block of the affinity. The two nodes with the
    largest mean affinity between their points are merged first. Parts of one cluster are merged before clusters are.

    Parameters
    ----------
    W : ndarray of shape (n, n)
        Symmetric affinities without negative entries.
    labels : ndarray of shape (n,)
        Clusters, numbered from 0.
    seed : int

    Notes
    -----
    O(n^2) time, O(n_c^3) for each cluster of n_c points, and O(l^3) for l parts.
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
    """Return the merges in order of the largest mean affinity; parts of one cluster are merged before clusters are.

    Parameters
    ----------
    sums : ndarray of shape (l, l)
        The sum of the affinities between the points of two parts.
    sizes : ndarray of shape (l,)
        The number of points of each part.
    homes : ndarray of shape (l,)
        The cluster of each part.
    """
    sums, sizes, homes = sums.copy(), sizes.copy(), homes.copy()
    n_parts, names, merges = len(sizes), np.arange(len(sizes)), []
    for step in range(n_parts - 1):
        means = sums / np.outer(sizes, sizes)
        same = homes[:, None] == homes
        np.fill_diagonal(same, False)
        allowed = same if same.any() else ~np.eye(len(sizes), dtype=bool)
        a, b = np.unravel_index(np.argmax(np.where(allowed, means, -np.inf)), means.shape)
        merges.append((names[a], names[b]))
        # The first node takes over the second one.
        sums[a] += sums[b]
        sums[:, a] += sums[:, b]
        sizes[a] += sizes[b]
        names[a] = n_parts + step
        keep = np.arange(len(sizes)) != b
        sums, sizes, homes, names = sums[np.ix_(keep, keep)], sizes[keep], homes[keep], names[keep]
    return np.array(merges, dtype=np.int64).reshape(-1, 2)
