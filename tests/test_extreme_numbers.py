"""One absurd but finite cell, in every public estimator: finite results, or an error that names the column."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import mercer
from mercer.checks import LARGEST_NUMBERS, refuse_too_large
from mercer.exceptions import NumericalError, TooLargeError
from tests.test_estimators import by_name

METHODS = ("predict", "predict_proba", "transform", "decision_function")
TOO_LARGE = (1e100, 1e155, -1e155, 1e300, 1.7e308)
LARGE = (1e20, -1e74)


def rows():
    random = np.random.default_rng(0)
    y = np.arange(30) % 3
    return random.normal(size=(30, 3)) + 2.0 * np.eye(3)[y], y


def with_cell(X, value):
    changed = X.copy()
    changed[5, 1] = value
    return changed


def results(fitted, X):
    return [np.asarray(getattr(fitted, name)(X), dtype=float) for name in METHODS if hasattr(fitted, name)]


@by_name
def test_a_number_too_large_to_be_squared_is_refused_with_its_column(estimator):
    X, y = rows()
    fitted = clone(estimator).fit(X, y)
    for value in TOO_LARGE:
        changed = with_cell(X, value)
        with pytest.raises(TooLargeError, match="column ('x1'|1) of row 5"):
            clone(estimator).fit(changed, y)
        for method in (name for name in METHODS if hasattr(fitted, name)):
            with pytest.raises(TooLargeError, match="column ('x1'|1) of row 5"):
                getattr(fitted, method)(changed)


@pytest.mark.filterwarnings("ignore")
@by_name
def test_a_large_number_gives_finite_results_or_a_named_error(estimator):
    X, y = rows()
    fitted = clone(estimator).fit(X, y)
    for value in LARGE:
        changed = with_cell(X, value)
        for rows_of_fit, asked in ((None, changed), (changed, X)):
            message, found = outcome(estimator, fitted, rows_of_fit, y, asked)
            assert message is None or message.endswith((".", ")")), message  # a sentence of ours, no LinAlgError
            assert all(np.isfinite(part).all() for part in found), value


def outcome(estimator, fitted, rows_of_fit, y, asked):
    """What our named error says, or None, and the results of all methods at the rows that are asked."""
    try:
        return None, results(fitted if rows_of_fit is None else clone(estimator).fit(rows_of_fit, y), asked)
    except (NumericalError, ValueError) as error:
        return str(error), []


@by_name
def test_frames_name_their_column(estimator):
    X, y = rows()
    frame = pd.DataFrame(with_cell(X, 1e200), columns=["age", "income", "height"])
    with pytest.raises(TooLargeError, match="X has the number 1e\\+200 in column 'income' of row 5"):
        clone(estimator).fit(frame, y)


@pytest.mark.parametrize("model", [mercer.GPRegressor, mercer.RFMRegressor])
def test_a_target_too_large_is_refused(model):
    X, y = rows()
    y = y.astype(float)
    y[7] = 1e160
    with pytest.raises(TooLargeError, match="y has the number 1e\\+160 of row 7"):
        model("laplace", "identity", warp="none").fit(X, y)


def test_a_tiny_column_does_not_make_a_number_too_large():
    X, y = rows()
    X[:, 1] *= 1e-30
    model = mercer.GPRegressor("matern52", "identity", warp="none", random_state=0).fit(X, y.astype(float))
    mean, std = model.predict(with_cell(X, 1e74), return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    encoded = mercer.TableEncoder().fit(X).transform(with_cell(X, 1e74))
    assert np.isfinite(encoded).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_bound_is_of_the_precision_and_missing_numbers_pass(dtype):
    largest = LARGEST_NUMBERS[np.dtype(dtype)]
    assert np.isfinite(np.array([largest], dtype) ** 2)
    refuse_too_large(np.array([[largest, np.nan], [-largest, 0.0]], dtype), "X")
    refuse_too_large(np.full((2, 2), np.nan, dtype), "X")
    with pytest.raises(TooLargeError, match="column 0 of row 1"):
        refuse_too_large(np.array([[0.0, np.nan], [-2 * largest, 0.0]], dtype), "X")
