"""Tables that are a draw of their rows: coefficients on landmarks are those of all rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import GPRegressor, RFMClassifier, RFMRegressor
from mercer.exceptions import DataWarning
from mercer.kernels import Laplace
from mercer.tabular_models import all_rows
from mercer.tabular_models.target_outliers import limits_of
from tests.examples_of import numbers

X = numbers(300, 3)
Y = np.sin(X[:, 0]) + 0.1 * numbers(300, 1, seed=1)[:, 0]
SETTINGS = {"metric": "identity", "bandwidth": None, "warp": "none", "random_state": 0}


@pytest.fixture(autouse=True)
def small_tables(monkeypatch):
    monkeypatch.setattr(all_rows, "MOST_TABLE_ROWS", 100)


def naive_coefficients(model, X, targets, weights):
    """Ridge regression on the landmarks of a fitted model, by all rows."""
    (machine,) = model.machines_
    Z, columns = machine.columns.transform(machine.rows), machine.columns.transform(X)
    K, K_mm = machine.kernel.matrix(columns, Z), machine.kernel.matrix(Z)
    return np.linalg.solve(K.T @ (weights[:, None] * K) + machine.ridge * K_mm, K.T @ (weights[:, None] * targets))


@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_are_those_of_all_rows(weighted):
    weights = 1.0 + np.arange(300) % 3 if weighted else None
    model = RFMRegressor(Laplace(2.0), n_landmarks=30, ridge=0.1, **SETTINGS).fit(X, Y, sample_weight=weights)
    mass = np.ones(300) if weights is None else weights
    expected = naive_coefficients(model, X, (Y - model.center_)[:, None], mass)
    assert_allclose(model.machines_[0].alpha, expected, rtol=1e-6, atol=1e-9)
    assert set(model.row_index_) - set(range(100))
    assert_array_equal(X[model.row_index_], model.machines_[0].rows)


def test_classes_are_indicators_of_all_rows_with_their_weights():
    y = np.where(Y > 0.4, "high", "low")
    y[7] = "rare"
    settings = {"class_weight": {"high": 2.0}, "ridge": 0.1}
    model = RFMClassifier(Laplace(2.0), n_landmarks=30, **SETTINGS, **settings).fit(X, y)
    assert list(model.classes_) == ["high", "low", "rare"]
    indicators = (y[:, None] == model.classes_) - model.center_
    expected = naive_coefficients(model, X, indicators, np.where(y == "high", 2.0, 1.0))
    assert_allclose(model.machines_[0].alpha, expected, rtol=1e-6, atol=1e-9)


def test_one_wrong_number_among_rows_that_are_not_in_the_table_is_left_out():
    options = {"n_landmarks": 30, "ridge": 0.1, **SETTINGS}
    right = RFMRegressor(Laplace(2.0), **options).fit(X, Y)
    outside = min(set(range(300)) - set(np.random.RandomState(0).choice(300, 100, replace=False)))
    wrong = Y.copy()
    wrong[outside] = 1e6
    with pytest.warns(DataWarning, match="y has 1 targets far beyond all others, from 100 rows"):
        model = RFMRegressor(Laplace(2.0), **options).fit(X, wrong)
    weights = np.ones(300)
    weights[outside] = 0.0
    expected = naive_coefficients(model, X, (Y - model.center_)[:, None], weights)
    assert_allclose(model.machines_[0].alpha, expected, rtol=1e-6, atol=1e-9)
    assert np.abs(model.predict(X) - right.predict(X)).max() < 0.5


def test_limits_are_twenty_times_the_farthest():
    values = np.column_stack([np.linspace(-1, 3, 101), np.arange(101) % 3])
    assert_allclose(limits_of(values), [[1.0, 1.0], [40.0, np.inf]])
    values[0, 0] = 1e9
    assert_allclose(limits_of(values)[:, 0], [1.04, 20 * 2.0], rtol=0.05)


def test_a_process_warps_the_targets_of_all_rows():
    y = np.exp(Y)
    model = GPRegressor(Laplace(2.0), n_landmarks=30, target_warp="log", **SETTINGS).fit(X, y)
    warp = model.target_warps_[0]
    assert warp.name == "log"
    expected = naive_coefficients(model, X, warp.forward(y)[:, None] - model.center_, np.ones(300))
    assert_allclose(model.machines_[0].alpha, expected, rtol=1e-5, atol=1e-7)
    assert np.corrcoef(model.predict(X), y)[0, 1] > 0.9
