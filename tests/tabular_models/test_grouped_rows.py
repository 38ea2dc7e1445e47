"""Identical rows collapsed into one: what a group is, and that a weighted fit cannot tell the difference."""

import numpy as np
import pytest
import torch
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

from mercer.kernels import Gaussian
from mercer.linalg import ridge_leave_one_out
from mercer.tabular_models.grouped_rows import collapse
from tests import naive
from tests.examples_of import QUICK, numbers, tables


@QUICK
@given(tables())
def test_a_group_is_the_rows_that_are_equal_with_their_weight_and_weighted_mean(X):
    random = np.random.default_rng(len(X))
    y, w = random.normal(size=(len(X), 2)), random.integers(0, 3, size=len(X)) + 0.5 * (np.arange(len(X)) == 0)
    for targets in (y, y[:, 0]):
        before = X.copy()
        grouped = collapse(X, targets, w)
        assert_array_equal(X, before)
        assert_array_equal(grouped.group == -1, w == 0)
        assert len(grouped.X) == len(grouped.y) == len(grouped.weights) == len(np.unique(X[w > 0], axis=0))
        for j, row in enumerate(grouped.X):
            equal = np.all(row == X, axis=1) & (w > 0)
            assert_array_equal(grouped.group == j, equal)
            assert grouped.weights[j] == pytest.approx(w[equal].sum())
            assert_allclose(grouped.y[j], np.average(targets[equal], axis=0, weights=w[equal]), atol=1e-12)


@QUICK
@given(tables())
def test_the_order_of_the_table_does_not_matter(X):
    y, turned = X.sum(axis=1), np.random.default_rng(0).permutation(len(X))
    one, other = collapse(X, y), collapse(X[turned], y[turned])
    assert_array_equal(one.X, other.X)
    assert_array_equal(one.weights, other.weights)
    assert_array_equal(one.group[turned], other.group)
    assert_allclose(one.y, other.y, rtol=1e-12, atol=1e-300)


def test_distinct_rows_stay_as_they_are_and_repeated_ones_have_a_weight():
    X = numbers(5, 2)
    plain = collapse(X, X[:, 0])
    assert plain.are_plain
    assert_array_equal(plain.X[plain.group], X)
    assert_array_equal(plain.y[plain.group], X[:, 0])
    twice = collapse(np.tile(X, (2, 1)), np.arange(10.0))
    assert not twice.are_plain
    assert_array_equal(twice.weights, np.full(5, 2.0))
    assert_array_equal(twice.y[twice.group], np.tile(np.arange(5) + 2.5, 2))
    assert_array_equal(twice.X[twice.group], np.tile(X, (2, 1)))


def test_minus_zero_equals_zero_and_rows_of_no_weight_are_dropped():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 1.0]])
    grouped = collapse(X, np.array([1.0, 3.0, 5.0]))
    assert len(grouped.X) == 2
    assert_array_equal(grouped.y[grouped.group], [2.0, 2.0, 5.0])
    dropped = collapse(X, np.array([1.0, 3.0, 5.0]), np.array([0.0, 2.0, 0.0]))
    assert_array_equal(dropped.group, [-1, 0, -1])
    assert_array_equal(dropped.y, [3.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_keep_their_precision_and_near_rows_stay_apart(dtype):
    X = np.array([[1.0], [1.0 + np.finfo(dtype).eps], [1.0]], dtype=dtype)
    grouped = collapse(X, np.array([1.0, 2.0, 3.0]))
    assert grouped.X.dtype == dtype
    assert_array_equal(grouped.X[grouped.group], X)
    assert_array_equal(grouped.y[grouped.group], [2.0, 2.0, 2.0])
    assert len(grouped.X) == 2


def test_any_layout_of_memory_gives_the_same_groups():
    X = np.round(numbers(20, 3))
    expected = collapse(X, X[:, 0])
    for laid_out in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        for a, b in zip(collapse(laid_out, X[:, 0]), expected, strict=True):
            assert_array_equal(a, b)


@pytest.mark.parametrize("outputs", [(), (2,)])
def test_a_weighted_fit_on_groups_equals_the_fit_on_all_rows(outputs):
    random = np.random.default_rng(0)
    X = np.round(random.normal(size=(40, 2)))
    y, w, Z = random.normal(size=(40, *outputs)), random.uniform(0.5, 2.0, size=40), numbers(7, 2, seed=1)
    grouped, kernel = collapse(X, y, w), Gaussian(1.3)
    assert len(grouped.X) < 30
    everything = naive.ridge_fit(kernel.matrix(X), y, 0.3, w)
    solution = ridge_leave_one_out(
        torch.from_numpy(kernel.matrix(grouped.X)), torch.from_numpy(grouped.y), 0.3, torch.from_numpy(grouped.weights)
    )
    assert_allclose(kernel.matrix(Z, grouped.X) @ solution.alpha.numpy(), kernel.matrix(Z, X) @ everything, atol=1e-10)
