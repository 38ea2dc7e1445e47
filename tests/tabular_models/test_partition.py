"""Leaves of rows: a row's leaf against a walk down the tree, cuts at medians along the direction that counts."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from mercer import ColumnWarp, Mahalanobis
from mercer.kernels import Gaussian, Laplace, Linear
from mercer.tabular_models import partition as partition_module
from mercer.tabular_models.partition import Partition, median_cuts
from tests.examples_of import numbers

METRICS = {
    "none": None,
    "diagonal": Mahalanobis([0.1, 3.0, 1.0]),
    "full": Mahalanobis(numbers(3, 3, seed=1)),
    "low rank": Mahalanobis(numbers(3, 2, seed=2)),
}


def cut(X, most_rows, metric=None, warp="none", seed=0, first=0):
    columns = ColumnWarp(warp).fit(X)
    Z = torch.from_numpy(columns.transform(X.astype(np.float64)))
    return median_cuts(Gaussian(1.0, metric=metric), columns, Z, most_rows, np.random.RandomState(seed), first)


def naive_leaf(partition, x):
    """The leaf of one row, by walking down from the first cut."""
    if not len(partition.thresholds):
        return 0
    z, place = partition.columns.transform(x[None])[0], 0
    while place >= 0:
        side = 0 if sum(z * partition.directions[place]) <= partition.thresholds[place] else 1
        place = partition.children[place, side]
    return -1 - place


@pytest.mark.parametrize("warp", ["none", "rank"])
@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())
def test_the_leaf_of_a_row_is_where_a_walk_down_the_tree_ends(metric, warp):
    X = numbers(90, 3)
    partition, leaves = cut(X, 20, metric, warp)
    assert partition.n_leaves == len(np.unique(leaves)) == 8
    assert_array_equal(np.sort(np.unique(leaves)), np.arange(8))
    fresh = numbers(50, 3, seed=9)
    assert_array_equal(partition.leaves_of(fresh), [naive_leaf(partition, x) for x in fresh])
    assert len(np.unique(partition.leaves_of(fresh))) > 5


@pytest.mark.parametrize("n", [61, 400])
@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())
def test_rows_of_the_fit_find_their_own_leaf_again(metric, n):
    """The median of an odd number of rows is one of them: rounding must not send it to the other side."""
    for seed in range(5):
        X = 100.0 + numbers(n, 3, seed=seed)
        partition, leaves = cut(X, 10, metric)
        assert_array_equal(partition.leaves_of(X), leaves)
        assert_array_equal([partition.leaves_of(x[None])[0] for x in X[:60]], leaves[:60])


@pytest.mark.parametrize("most", [10, 25, 90])
def test_leaves_have_at_most_so_many_rows_and_halves_are_equal(most):
    _, leaves = cut(numbers(90, 3), most)
    sizes = np.bincount(leaves)
    assert sizes.max() <= most
    assert sizes.min() >= (sizes.max() - 1) // 2
    assert sizes.sum() == 90


def test_of_one_column_there_is_one_direction():
    one, other = (cut(numbers(40, 1), 15, first=first) for first in (0, 3))
    assert_array_equal(one[1], other[1])


def test_few_rows_are_one_leaf():
    partition, leaves = cut(numbers(12, 3), 12)
    assert partition.n_leaves == 1
    assert_array_equal(leaves, np.zeros(12))
    assert_array_equal(partition.leaves_of(numbers(4, 3)), np.zeros(4))


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS.keys())
def test_the_first_cut_is_at_the_median_along_the_direction_of_the_largest_spread(metric, first):
    X = numbers(81, 3) * [1.0, 2.0, 0.5]
    partition, leaves = cut(X, 50, metric, first=first)
    Z = partition.columns.transform(X)
    L = np.eye(3) if metric is None else np.asarray(metric.factor)
    L = np.diag(L) if L.ndim == 1 else L
    covariance = np.cov((Z @ L).T)
    leading = np.linalg.eigh(covariance)[1][:, -1 - first]
    (direction,), (threshold,) = partition.directions, partition.thresholds
    expected = L @ leading
    assert_allclose(direction * np.sign(direction @ expected), expected, atol=1e-8)
    below, above = np.sort(Z @ direction)[40:42]
    assert below - 1e-12 <= threshold < above
    assert_array_equal(np.bincount(leaves), [41, 40])


def test_columns_that_the_metric_does_not_see_are_not_cut():
    X = numbers(100, 3) * [1.0, 50.0, 1.0]
    partition, _ = cut(X, 20, Mahalanobis([1.0, 0.0, 1e-9]))
    assert partition.n_leaves == 8
    assert_allclose(partition.directions[:, 1], 0.0, atol=1e-12)
    assert (np.abs(partition.directions[:, 0]) > 0.9).all()


def test_rows_that_are_alike_stay_together_and_the_rest_is_cut():
    alike = np.repeat(numbers(1, 3), 40, axis=0)
    partition, leaves = cut(alike, 10)
    assert partition.n_leaves == 1
    X = np.concatenate([alike, numbers(30, 3, seed=4)])
    partition, leaves = cut(X, 10)
    assert len(set(leaves[:40])) == 1
    assert np.bincount(leaves[40:]).max() <= 10
    assert_array_equal(partition.leaves_of(X), leaves)
    # Alike under the metric: the last column alone differs, and the metric does not see it.
    hidden = np.concatenate([np.ones((40, 2)), numbers(40, 1)], axis=1)
    hidden[0, :2] = 0.0
    partition, leaves = cut(hidden, 10, Mahalanobis([1.0, 1.0, 0.0]))
    assert len(set(leaves[1:])) == 1


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_a_column_of_two_values_is_cut_between_them(share):
    X = np.zeros((100, 1))
    X[: int(100 * share)] = 1.0
    partition, leaves = cut(X, 30)
    assert partition.n_leaves == 2
    assert len(set(leaves[X[:, 0] == 1.0])) == len(set(leaves[X[:, 0] == 0.0])) == 1
    assert_array_equal(partition.leaves_of(X), leaves)


def test_of_many_rows_some_say_the_direction(monkeypatch):
    monkeypatch.setattr(partition_module, "MOST_DIRECTION_ROWS", 30)
    X = numbers(200, 3) * [1.0, 1.0, 1.0] + 3 * numbers(200, 1, seed=5)
    one, other, third = (cut(X, 120, Mahalanobis(), seed=seed) for seed in (0, 0, 1))
    assert_array_equal(one[0].directions, other[0].directions)
    assert not np.array_equal(one[0].directions, third[0].directions)
    for partition, leaves in (one, third):
        assert np.abs(partition.directions[0]).min() > 0.4  # All rows agree on the diagonal.
        assert_array_equal(np.bincount(leaves), [100, 100])


def test_kernels_without_a_metric_of_their_own_and_single_precision_are_taken():
    X = numbers(40, 3).astype(np.float32)
    columns = ColumnWarp("none").fit(X)
    Z = torch.from_numpy(columns.transform(X.astype(np.float64)))
    for kernel in (Linear(), Laplace(1.0) + Linear()):
        partition, leaves = median_cuts(kernel, columns, Z, 10, np.random.RandomState(0))
        assert_array_equal(partition.leaves_of(X), leaves)
    # Asking changes nothing of what is asked, and of the partition.
    assert isinstance(partition, Partition)
    assert X.dtype == np.float32
