"""Many landmarks by conjugate gradients: the same coefficients as by solving, and machines that use them."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from mercer import RFMClassifier, RFMRegressor
from mercer.exceptions import ConvergenceWarning
from mercer.kernels import Laplace
from mercer.tabular_models.landmark_gradients import many_landmarks
from mercer.tabular_models.landmark_ridge import landmark_sums
from tests.examples_of import numbers
from tests.tabular_models.test_landmark_ridge import KERNELS, naive_fit, problem

EXACT = {"tolerance": 1e-12, "max_steps": 200}


@pytest.mark.parametrize("ridge", [0.02, 1.0])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_coefficients_are_those_of_the_equations(kernel, ridge):
    X, y, w = problem(40)
    landmarks = X[::3] + 0.1
    # Blocks of a few rows.
    found = many_landmarks(kernel, X, landmarks, y, ridge, w, working_memory=0.005, **EXACT).x
    assert_allclose(found, naive_fit(kernel, X, landmarks, y, w, ridge), rtol=1e-6, atol=1e-9)
    without = many_landmarks(kernel, X, landmarks, y, ridge, **EXACT).x
    assert_allclose(without, naive_fit(kernel, X, landmarks, y, torch.ones_like(w), ridge), rtol=1e-6, atol=1e-9)


def test_rows_are_warped_and_landmarks_are_not():
    X, y, _ = problem(30)
    landmarks = torch.tanh(X[::3])
    found = many_landmarks(Laplace(1.5), X, landmarks, y, 0.1, warp=np.tanh, **EXACT).x
    expected = naive_fit(Laplace(1.5), torch.tanh(X), landmarks, y, torch.ones(30, dtype=X.dtype), 0.1)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_where_every_row_is_a_landmark_the_preconditioner_is_the_inverse(weight):
    X, y, _ = problem(30)
    w = torch.full((30,), weight, dtype=X.dtype)
    found = many_landmarks(Laplace(1.5), X, X, y, 0.3, w, tolerance=1e-9, max_steps=1)
    assert found.converged
    assert_allclose(found.x, naive_fit(Laplace(1.5), X, X, y, w, 0.3), rtol=1e-6, atol=1e-9)


def test_single_precision_of_rows():
    X, y, w = problem(40, dtype=torch.float32)
    found = many_landmarks(Laplace(1.5), X, X[::3], y, 0.1, w).x
    double = [part.double() for part in (X, X[::3], y, w)]
    K = Laplace(1.5).matrix(double[0], double[1])
    assert_allclose(K @ found, K @ naive_fit(Laplace(1.5), *double, 0.1), atol=1e-4)


def test_too_few_steps_are_known():
    X, y, w = problem(40)
    found = many_landmarks(KERNELS["gaussian"], X, X[::3], y, 1e-4, w, tolerance=1e-12, max_steps=1)
    assert (found.converged, found.steps) == (False, 1)


def test_where_steps_do_not_suffice_the_smaller_machine_is_kept(monkeypatch):
    monkeypatch.setattr("mercer.tabular_models.landmark_table.MOST_SUMMED", 40)
    monkeypatch.setattr("mercer.tabular_models.landmark_table.SUMMED_OF_MANY", 30)
    steps = many_landmarks.__kwdefaults__ | {"max_steps": 1}
    monkeypatch.setattr(many_landmarks, "__kwdefaults__", steps)
    X = numbers(80, 2)
    options = {"kernel": "gaussian", "metric": "identity", "warp": "none", "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="n_landmarks=50 are too many .* 30 landmarks are used"):
        fitted = RFMRegressor(**options, n_landmarks=50).fit(X, np.sin(2 * X[:, 0]))
    fewer = RFMRegressor(**options, n_landmarks=30).fit(X, np.sin(2 * X[:, 0]))
    assert len(fitted.row_index_) == 30
    assert_allclose(fitted.predict(X), fewer.predict(X))


@pytest.mark.parametrize("model", [RFMRegressor, RFMClassifier])
def test_machines_on_many_landmarks(model, monkeypatch):
    """The ridge is that of fewer landmarks, coefficients are those of all; rows that repeat have weights."""
    X = numbers(80, 2)
    X = np.concatenate([X, X[:10]])
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * numbers(90, 1, seed=2)[:, 0]  # noise: a ridge that is not tiny
    y = y if model is RFMRegressor else np.digitize(y, [-0.5, 0.5])
    options = {"kernel": "gaussian", "metric": "identity", "warp": "none", "random_state": 0}
    monkeypatch.setattr("mercer.tabular_models.landmark_table.MOST_SUMMED", 40)
    monkeypatch.setattr("mercer.tabular_models.landmark_table.SUMMED_OF_MANY", 30)
    fitted = model(**options, n_landmarks=50).fit(X, y)
    (machine,) = fitted.machines_
    assert machine.rows.shape == (50, 2)
    assert len(fitted.row_index_) == 50
    # Landmarks are rows, and their numbers say which.
    assert_array_equal(machine.rows, X[fitted.row_index_])
    fewer = model(**options, n_landmarks=30).fit(X, y)
    assert (fitted.ridge_, fitted.loo_score_) == (fewer.ridge_, fewer.loo_score_)
    targets = y[:, None] if model is RFMRegressor else np.eye(3)[y]
    rows, basis = (torch.from_numpy(machine.columns.transform(part)) for part in (X, machine.rows))
    centered = torch.from_numpy(targets - targets.mean(axis=0))
    alpha = landmark_sums(machine.kernel, rows, basis, centered).alpha(fitted.ridge_)
    expected = machine.kernel.matrix(rows, basis) @ alpha
    assert_allclose(machine.mean(X), expected, atol=1e-4)
    assert np.abs(fewer.machines_[0].mean(X) - expected.numpy()).max() > 1e-3
