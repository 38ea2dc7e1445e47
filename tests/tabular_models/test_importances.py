"""Total effects against a loop over rows and columns, and what they say of columns that matter and do not."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from mercer import ColumnWarp
from mercer.kernels import Gaussian, Laplace, Linear
from mercer.tabular_models import importances
from mercer.tabular_models.importances import shares_of_effects, total_effects
from mercer.tabular_models.machine import Machine
from tests.examples_of import numbers


def machine(X, alpha, kernel, share=1.0, warp="none"):
    return Machine(kernel, ColumnWarp(warp).fit(X), X, alpha, 0.1, share, np.ones(alpha.shape[1]))


def naive_effects(machines, X, drawn, donors):
    """Half the mean squared change of the prediction, a row, a column and an output at a time."""

    def predicted(x):
        return sum(each.share * each.mean(x[None])[0] for each in machines)

    effects = np.zeros(X.shape[1])
    for column in range(X.shape[1]):
        for row, donor in zip(drawn, donors, strict=True):
            exchanged = X[row].copy()
            exchanged[column] = X[donor, column]
            effects[column] += 0.5 * ((predicted(exchanged) - predicted(X[row])) ** 2).sum() / len(drawn)
    return effects


@pytest.mark.parametrize("outputs", [1, 3])
def test_effects_are_those_of_a_loop_over_rows_and_columns(outputs):
    X = np.exp(numbers(12, 3))
    machines = [
        machine(X, numbers(12, outputs, seed=1), Laplace(1.3), 0.6),
        machine(X[:7], numbers(7, outputs, seed=2), Gaussian(0.8), 0.3, "log"),
    ]
    before = X.copy()
    found = total_effects(machines, X, np.random.RandomState(5))
    random = np.random.RandomState(5)
    expected = naive_effects(machines, X, random.permutation(12), random.permutation(12))
    assert_allclose(found, expected, rtol=1e-10)
    assert_allclose(total_effects(machines, X, np.random.RandomState(5), working_memory=1e-4), expected, rtol=1e-10)
    assert_array_equal(X, before)


def test_of_a_sum_of_columns_they_are_the_variances_of_its_terms():
    """f(x) = 3 x_0 - x_1 on independent columns: Var(3 x_0) = 9 and Var(x_1) = 1."""
    X = numbers(400, 3)
    Z = ColumnWarp("none").fit_transform(X)
    alpha = np.linalg.lstsq(Z.T, np.array([3.0, -1.0, 0.0]), rcond=None)[0]
    effects = total_effects([machine(X, alpha[:, None], Linear())], X, np.random.RandomState(0))
    assert_allclose(effects, [9.0, 1.0, 0.0], rtol=0.15, atol=1e-12)


def test_a_column_that_is_nearly_constant_counts_for_little_however_steep():
    X = numbers(400, 2)
    X[:, 1] = np.arange(400) < 8
    columns = ColumnWarp("none", standardize=False).fit(X)
    alpha = np.linalg.lstsq(X.T, np.array([1.0, 3.0]), rcond=None)[0]
    steep = Machine(Linear(), columns, X, alpha[:, None], 0.1, 1.0, np.ones(1))
    effects = shares_of_effects(total_effects([steep], X, np.random.RandomState(0)))
    assert effects[0] > 0.75
    assert 0.0 < effects[1] < 0.25


def test_fewer_rows_are_drawn_where_values_are_many(monkeypatch):
    X, asked = numbers(300, 2), []

    class Spy(Machine):
        def mean(self, X, *args):
            asked.append(len(X))
            return super().mean(X, *args)

    spy = Spy(Laplace(1.0), ColumnWarp("none").fit(X), X, numbers(300, 1), 0.1, 1.0, np.ones(1))
    for most, expected in ((500, 300), (120, 120)):
        monkeypatch.setattr(importances, "MOST_ROWS", most)
        total_effects([spy], X, np.random.RandomState(0))
        assert asked == [expected, 2 * expected]
        asked.clear()
    monkeypatch.setattr(importances, "MOST_VALUES", 1.0)
    total_effects([spy], X, np.random.RandomState(0))
    assert asked == [importances.FEWEST_ROWS, 2 * importances.FEWEST_ROWS]
    asked.clear()
    monkeypatch.setattr(importances, "ROWS_AT_A_TIME", importances.FEWEST_ROWS)
    total_effects([spy], X, np.random.RandomState(0))
    assert asked == [importances.FEWEST_ROWS] * 3


def test_shares_sum_to_one_and_are_equal_where_nothing_counts():
    assert_allclose(shares_of_effects(np.array([3.0, 1.0])), [0.75, 0.25])
    assert_array_equal(shares_of_effects(np.zeros(4)), np.full(4, 0.25))
    X = numbers(10, 2)
    constant = machine(X, np.zeros((10, 1)), Gaussian(1.0))
    assert_array_equal(total_effects([constant], X, np.random.RandomState(0)), [0.0, 0.0])


@pytest.mark.parametrize("most_columns", [0, 200])
def test_predictions_of_few_rows_are_made_on_one_thread(monkeypatch, most_columns):
    seen = []

    class Watched(Machine):
        def mean(self, *args):
            seen.append(torch.get_num_threads())
            return super().mean(*args)

        def gradients(self, *args):
            seen.append(torch.get_num_threads())
            return super().gradients(*args)

    monkeypatch.setattr(importances, "MOST_COLUMNS", most_columns)
    X, before = numbers(9, 2), torch.get_num_threads()
    watched = Watched(Gaussian(1.0), ColumnWarp("none").fit(X), X, numbers(9, 1), 0.1, 1.0, np.ones(1))
    try:
        torch.set_num_threads(2)
        total_effects([watched], X, np.random.RandomState(0))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert set(seen) == {1}
