"""Support: the share of training rows counted by hand, uniform where nothing moved, small where rows moved away."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score

from mercer import GPRegressor
from mercer.tabular_models.support import support_of
from tests.examples_of import numbers

RADIAL = ("gaussian", "laplace", "product_laplace")
SETTINGS = [("linear", "identity"), *((kernel, metric) for kernel in RADIAL for metric in ("identity", "ard"))]


def test_it_counts_the_rows_that_were_as_uncertain():
    seen = [np.sort(numbers(9) ** 2), np.sort(numbers(5, seed=1) ** 2)]
    values = [np.append(numbers(3, seed=2) ** 2, seen[0][4]), np.append(numbers(3, seed=3) ** 2, seen[1][0])]
    expected = [
        sum(
            share * (1 + sum(known >= value[i] for known in each)) / (1 + len(each))
            for share, value, each in zip((0.7, 0.3), values, seen, strict=True)
        )
        for i in range(4)
    ]
    assert_allclose(support_of(values, seen, np.array([0.7, 0.3])), expected)


def made(n=200, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.2 * random.normal(size=n)


@pytest.mark.parametrize(("kernel", "metric"), SETTINGS)
def test_rows_that_moved_away_are_told_from_those_that_did_not(kernel, metric):
    X, y = made()
    near, _ = made(seed=1)
    model = GPRegressor(kernel, metric, warp="none", random_state=0).fit(X, y)
    support = model.support(near)
    assert support.shape == (200,)
    assert np.mean(support < 0.1) == pytest.approx(0.1, abs=0.08)
    assert support.mean() == pytest.approx(0.5, abs=0.1)
    shifts = {
        "far in all columns": near + 4.0,
        "far in one column that counts": near + np.array([0.0, 5.0, 0.0, 0.0]),
        "wider": 6.0 * near,
    }
    for moved in shifts.values():
        assert roc_auc_score(np.repeat([1, 0], 200), np.append(support, model.support(moved))) >= 0.95


def test_defaults_with_weights_leaves_and_landmarks_tell_them_too(few_rows):
    X, y = made(150)
    near, _ = made(seed=1)
    for options in ({"n_landmarks": "auto"}, {"n_landmarks": 40}):
        model = GPRegressor("gaussian", "ard", warp="none", random_state=0, **options)
        model.fit(X, y, sample_weight=np.linspace(0.5, 2.0, 150))
        support, moved = model.support(near), model.support(near + 4.0)
        assert roc_auc_score(np.repeat([1, 0], 200), np.append(support, moved)) >= 0.95
