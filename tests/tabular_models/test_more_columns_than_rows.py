"""Where columns are as many as rows, a left-out row must not be told its own target."""

import numpy as np
import pytest

from mercer import GPClassifier, GPRegressor, RFMClassifier, RFMRegressor
from mercer.kernels import Gaussian, Linear
from mercer.linalg import ridge_leave_one_out
from mercer.tabular_models.settings import with_intercept
from tests.examples_of import numbers
from tests.tabular_models.test_table import table_of

SEEN, NEW, COLUMNS = 30, 500, 45


def noise(seed):
    """A table whose columns say nothing of its numbers, nor of its two classes."""
    X, y = numbers(SEEN + NEW, COLUMNS, seed=seed), numbers(SEEN + NEW, seed=seed + 100)
    return X[:SEEN], y[:SEEN], X[SEEN:], y[SEEN:]


@pytest.mark.parametrize("kernel", [Linear(), Gaussian(2.0) + 3.0 * Linear()], ids=["linear", "sum"])
def test_left_out_errors_of_a_linear_kernel_are_those_of_fits_without_the_row(kernel):
    """Fits that begin anew: the other rows are centered by their own means, and so are their targets."""
    X, y, _, _ = noise(0)
    table, ridge = table_of(X, y, standardize=True), 1e-6
    Z = table.warped("none")
    resolved = with_intercept(kernel).resolved(Z)
    found = ridge_leave_one_out(resolved.matrix(Z), table.y, ridge).residuals.numpy()[:, 0]
    Z, targets, plain = Z.numpy(), table.y.numpy()[:, 0], kernel
    for i in (0, 7, 29):
        others = np.delete(np.arange(SEEN), i)
        center, mean = Z[others].mean(axis=0), targets[others].mean()
        K = np.asarray(plain(Z[others] - center)) + ridge * np.eye(len(others))
        k = np.asarray(plain(Z[[i]] - center, Z[others] - center))[0]
        error = targets[i] - mean - k @ np.linalg.solve(K, targets[others] - mean)
        assert abs(found[i] - error) < 0.1 * abs(error) + 0.05
    assert np.sqrt(np.mean(found**2)) > 0.9 * targets.std()


@pytest.mark.parametrize("make", [RFMRegressor, GPRegressor], ids=lambda make: make.__name__)
@pytest.mark.parametrize("kernel", ["auto", "linear", Linear()], ids=["auto", "name", "object"])
def test_noise_is_not_taken_for_a_function(make, kernel):
    errors, inside = [], []
    for seed in range(2):
        X, y, X_new, y_new = noise(seed)
        model = make(kernel, metric="identity", random_state=0).fit(X, y)
        errors.append(np.sqrt(np.mean((model.predict(X_new) - y_new) ** 2)))
        if make is GPRegressor:
            lower, upper = model.predict_interval(X_new, 0.9).T
            inside.append(np.mean((lower <= y_new) & (y_new <= upper)))
    # The mean of the targets has an error of 1; a function through all of them has 1.3 to 3.
    assert np.mean(errors) < 1.2
    assert not inside or np.mean(inside) > 0.7


def test_a_kernel_is_kept_as_it_is_where_nothing_is_chosen():
    X, y, _, _ = noise(0)
    assert RFMRegressor(Linear(), "identity", ridge=0.1).fit(X, y).kernel_ == Linear()
    assert RFMRegressor(Linear(), "identity").fit(X, y).kernel_.offset > 0


@pytest.mark.parametrize("make", [RFMClassifier, GPClassifier], ids=lambda make: make.__name__)
def test_noise_is_not_taken_for_classes(make):
    losses = []
    for seed in range(3):
        X, y, X_new, y_new = noise(seed)
        model = make("linear", metric="identity", random_state=0).fit(X, y > 0)
        truth = (y_new > 0).astype(int)
        losses.append(-np.log(model.predict_proba(X_new)[np.arange(NEW), truth]).mean())
    assert np.mean(losses) < np.log(2) + 0.15
