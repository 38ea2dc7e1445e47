"""Trees of clusters: cuts are nested, the middle one is the clusters themselves, the likest join first."""

import numpy as np
import pytest

from mercer.clustering.trees import PARTS, ClusterTree, cluster_tree
from mercer.exceptions import InvalidParameterError


def blocks(sizes, near=()):
    """An affinity with a block for each size, and a little between the blocks of `near` pairs."""
    home = np.repeat(np.arange(len(sizes)), sizes)
    W = np.where(home[:, None] == home, 1.0, 0.001)
    for a, b, value in near:
        W[np.ix_(home == a, home == b)] = W[np.ix_(home == b, home == a)] = value
    random = np.random.default_rng(0).uniform(0.9, 1.1, W.shape)
    return W * (random + random.T) / 2, home


def partition(labels):
    return {frozenset(np.flatnonzero(labels == label)) for label in np.unique(labels)}


def test_the_cut_at_the_clusters_is_the_clusters():
    W, home = blocks([20, 30, 25])
    tree = cluster_tree(W, home, 0)
    assert partition(tree.cut(3)[tree.parts]) == partition(home)
    assert len(np.unique(tree.parts)) == 3 * PARTS == len(tree.merges) + 1
    assert (tree.cut(1) == 0).all()
    assert partition(tree.cut(3 * PARTS)[tree.parts]) == partition(tree.parts)


def test_cuts_are_nested():
    W, home = blocks([20, 30, 25, 12])
    tree = cluster_tree(W, home, 0)
    for k in range(1, len(tree.merges) + 1):
        coarse, fine = partition(tree.cut(k)[tree.parts]), partition(tree.cut(k + 1)[tree.parts])
        assert (len(coarse), len(fine)) == (k, k + 1)
        assert all(any(part <= whole for whole in coarse) for part in fine)


def test_the_likest_clusters_join_first():
    W, home = blocks([20, 20, 20, 20], near=[(0, 3, 0.2), (1, 2, 0.1)])
    tree = cluster_tree(W, home, 0)
    whole = [tree.cut(k)[tree.parts] for k in (3, 2)]
    assert partition(whole[0]) == partition(np.where(home == 3, 0, home))
    assert partition(whole[1]) == partition(np.isin(home, [1, 2]))


def test_means_count_and_not_sums():
    """A large cluster is not everybody's next of kin for its size."""
    W, home = blocks([100, 10, 10], near=[(0, 1, 0.05), (1, 2, 0.1)])
    tree = cluster_tree(W, home, 0)
    assert partition(tree.cut(2)[tree.parts]) == partition(home == 0)


def test_parts_are_those_of_the_block():
    W, home = blocks([20, 20, 20, 20])
    labels = np.where(home < 2, 0, 1)  # two clusters of two blocks each
    W[home[:, None] == home] += 1.0
    tree = cluster_tree(W, labels, 0)
    assert partition(tree.cut(4)[tree.parts]) == partition(home)


def test_small_clusters_are_not_cut():
    W, home = blocks([3, 4, 30])
    tree = cluster_tree(W, home, 0)
    assert len(np.unique(tree.parts[home < 2])) == 2
    assert len(tree.merges) == 1 + PARTS


def test_one_point_and_bad_numbers():
    tree = cluster_tree(np.ones((1, 1)), np.zeros(1, dtype=int), 0)
    assert tree.cut(1).tolist() == [0]
    assert tree.merges.shape == (0, 2)
    for wrong in (0, 2, "3"):
        with pytest.raises(InvalidParameterError, match="n_clusters="):
            tree.cut(wrong)


def test_clusters_are_numbered_by_their_first_part():
    tree = ClusterTree(np.arange(4), np.array([[2, 3], [1, 4], [0, 5]]))
    assert tree.cut(4).tolist() == [0, 1, 2, 3]
    assert tree.cut(3).tolist() == [0, 1, 2, 2]
    assert tree.cut(2).tolist() == [0, 1, 1, 1]
