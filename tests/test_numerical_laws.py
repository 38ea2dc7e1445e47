"""What no order, unit or thread may change: closed forms with every setting and landmark given."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from threadpoolctl import threadpool_limits

import mercer
from mercer.kernels import Gaussian, Laplace, Matern52
from tests.examples_of import numbers
from tests.test_threads_and_state import LISTED

NOTHING_TO_CHOOSE = {"kernel": Laplace(2.0), "metric": "identity", "warp": "none", "bandwidth": None, "random_state": 0}
REGRESSORS = {
    "GPRegressor": lambda **options: mercer.GPRegressor(
        **(NOTHING_TO_CHOOSE | {"noise": 0.1, "output_scale": 1.0} | options)
    ),
    "RFMRegressor": lambda **options: mercer.RFMRegressor(**(NOTHING_TO_CHOOSE | {"ridge": 0.1} | options)),
    "RFMRegressor, full": lambda **options: mercer.RFMRegressor(
        **(NOTHING_TO_CHOOSE | {"ridge": 0.1, "metric": "full", "iterate": "last", "average": False} | options)
    ),
}
by_regressor = pytest.mark.parametrize("make", REGRESSORS.values(), ids=REGRESSORS)


def table(n=40, d=4):
    X = numbers(n, d, seed=1)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], numbers(15, d, seed=2)


def close(found, expected, tolerance=1e-9):
    assert_allclose(found, expected, atol=tolerance * np.abs(expected).max(), rtol=0)


@by_regressor
def test_the_order_of_rows_does_not_matter(make):
    X, y, new = table()
    order = np.random.default_rng(3).permutation(len(X))
    close(make().fit(X[order], y[order]).predict(new), make().fit(X, y).predict(new))


@by_regressor
def test_the_order_of_columns_does_not_matter(make):
    X, y, new = table()
    order = [2, 0, 3, 1]
    close(make().fit(X[:, order], y).predict(new[:, order]), make().fit(X, y).predict(new))


@by_regressor
@pytest.mark.parametrize("unit", [1e-12, 1e-3, 1e6, 1e12])
def test_the_unit_and_the_origin_of_a_column_do_not_matter(make, unit):
    X, y, new = table()
    units, origins = np.array([1.0, unit, 1.0, -unit]), np.array([0.0, 3.0 * unit, 100.0, 0.0])
    expected = make().fit(X, y).predict(new)
    close(make().fit(X * units + origins, y).predict(new * units + origins), expected, 1e-8)


@by_regressor
@pytest.mark.parametrize("unit", [1e-12, 1e-3, 1e6, 1e12])
def test_predictions_move_with_the_origin_and_the_unit_of_the_target(make, unit):
    X, y, new = table()
    scaled = make(output_scale=unit**2, noise=0.1 * unit**2) if isinstance(make(), mercer.GPRegressor) else make()
    expected = make().fit(X, y).predict(new)
    close((scaled.fit(X, unit * (y + 7.0)).predict(new)) / unit - 7.0, expected, 1e-8)


@by_regressor
def test_whole_weights_are_copies(make):
    X, y, new = table()
    weights = np.arange(len(X)) % 3 + 1
    copies = np.repeat(np.arange(len(X)), weights)
    weighted = make().fit(X, y, sample_weight=weights.astype(float)).predict(new)
    close(make().fit(X[copies], y[copies]).predict(new), weighted)


def test_with_landmarks_given_the_order_of_rows_does_not_matter():
    X, _, new = table()
    order = np.random.default_rng(3).permutation(len(X))
    make = lambda: mercer.Nystrom(Gaussian(2.0), landmarks=X[:10])  # noqa: E731
    first, second = make().fit(X).transform(new), make().fit(X[order]).transform(new)
    close(second @ second.T, first @ first.T)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_a_kernel_in_units_of_its_bandwidth_has_no_units(unit):
    X, _, new = table()
    for kernel in (Gaussian, Laplace, Matern52):
        close(kernel(unit).matrix(unit * X, unit * new), kernel(1.0).matrix(X, new), 1e-12)


def test_discriminants_do_not_depend_on_order_or_units():
    X, _, new = table(60)
    y = np.arange(60) % 3
    X = X + 1.5 * np.eye(3, 4)[y]
    order, columns = np.random.default_rng(3).permutation(60), [3, 1, 0, 2]

    def probabilities(X, y, new, unit=1.0):
        model = mercer.KernelDiscriminant(Gaussian(2.0 * unit), bandwidth=None, ridge=1e-2, n_landmarks=None)
        return model.fit(X, y).predict_proba(new)

    expected = probabilities(X, y, new)
    close(probabilities(X[order], y[order], new), expected, 1e-7)
    close(probabilities(X[:, columns], y, new[:, columns]), expected, 1e-7)
    for unit in (1e-12, 1e12):
        close(probabilities(unit * X, y, unit * new, unit), expected, 1e-7)


CLASSIFIERS = {
    "RFMClassifier": lambda: mercer.RFMClassifier(**NOTHING_TO_CHOOSE, ridge=0.1),
    "GPClassifier": lambda: mercer.GPClassifier(**NOTHING_TO_CHOOSE, output_scale=4.0),
}


@pytest.mark.parametrize("make", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_classifiers_do_not_depend_on_order_or_units_and_whole_weights_are_copies(make):
    X, _, new = table(60)
    y = np.arange(60) % 3
    X = X + np.eye(3, 4)[y]
    order, columns = np.random.default_rng(3).permutation(60), [3, 1, 0, 2]
    expected = make().fit(X, y).predict_proba(new)
    # Newton's steps and calibration end within a tolerance, from where they began.
    close(make().fit(X[order], y[order]).predict_proba(new), expected, 1e-3)
    close(make().fit(X[:, columns], y).predict_proba(new[:, columns]), expected, 1e-3)
    for unit in (1e-12, 1e-3, 1e6, 1e12):
        units, origins = np.array([1.0, unit, 1.0, -unit]), np.array([0.0, 3.0 * unit, 100.0, 0.0])
        close(make().fit(X * units + origins, y).predict_proba(new * units + origins), expected, 1e-3)
    weights = np.arange(60) % 3 + 1
    copies = np.repeat(np.arange(60), weights)
    weighted = make().fit(X, y, sample_weight=weights.astype(float)).predict_proba(new)
    close(make().fit(X[copies], y[copies]).predict_proba(new), weighted, 1e-3)


@pytest.mark.parametrize("loss", ["spectral_contrastive", "simple_contrastive", "kernel_pca"])
def test_exact_embeddings_do_not_depend_on_order_or_units(loss):
    X, _, new = table(60)
    order = np.random.default_rng(3).permutation(60)
    other = X + 0.1 * np.random.default_rng(4).normal(size=X.shape)

    def products(X, other, new, unit=1.0):
        model = mercer.KernelEmbedding(
            loss, Gaussian(2.0 * unit), n_components=3, landmarks=X[np.argsort(X[:, 0])[:20]], ridge=0.1, bandwidth=None
        )
        Z = model.fit_views(X, other).transform(new)
        return Z @ Z.T

    expected = products(X, other, new)
    close(products(X[order], other[order], new), expected, 1e-7)
    columns = [0, 2, 3, 1]  # landmarks are those of the smallest numbers of the first
    close(products(X[:, columns], other[:, columns], new[:, columns]), expected, 1e-7)
    for unit in (1e-12, 1e12):
        close(products(unit * X, unit * other, unit * new, unit), expected, 1e-6)


def with_threads(count, function):
    """What a function returns with so many threads of torch and of BLAS."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            return function()
    finally:
        torch.set_num_threads(before)


CLOSED_FORMS = {
    "GPRegressor": REGRESSORS["GPRegressor"](n_landmarks=None),
    "RFMRegressor": REGRESSORS["RFMRegressor"](n_landmarks=None),
    "KernelDiscriminant": mercer.KernelDiscriminant(Gaussian(2.0), bandwidth=None, ridge=1e-2, n_landmarks=None),
    "Nystrom": mercer.Nystrom(Gaussian(2.0), n_landmarks=100, n_components=5, random_state=0),
}


def gram(estimator, X, y, new):
    """Predictions, or the inner products of features, whose signs are nobody's affair."""
    fitted = estimator.fit(X, y)
    if hasattr(fitted, "predict"):
        return np.asarray(fitted.predict(new), dtype=float)
    features = fitted.transform(new)
    return features @ features.T


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(estimator, marks=[pytest.mark.slow] if hasattr(estimator, "metric") else [], id=name)
        for name, estimator in CLOSED_FORMS.items()
    ],
)
def test_closed_forms_are_the_same_with_one_thread_and_with_two(estimator):
    X, new = numbers(1300, 4, seed=1), numbers(50, 4, seed=2)  # enough rows for two threads to be used
    y = (X[:, 0] > 0).astype(float)
    one, two = (with_threads(count, lambda: gram(estimator, X, y, new)) for count in (1, 2))
    close(two, one, 1e-10)


@pytest.mark.parametrize(
    "name", ["MCR2", "MCR2 with dropout", "ManifoldClustering", "NMCE", "KernelEmbedding by gradient"]
)
def test_trained_models_are_the_same_with_one_thread_and_with_two(name):
    X = numbers(60, 3, seed=1)
    y = np.arange(60) % 3
    one, two = (with_threads(count, lambda: LISTED[name].fit(X, y).transform(X)) for count in (1, 2))
    close(two, one, 1e-3)
