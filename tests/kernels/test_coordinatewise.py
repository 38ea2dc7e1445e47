"""Products over columns: what the laws of all kernels do not say of them."""

import itertools

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from mercer import Mahalanobis
from mercer.agop import predictor_gradients
from mercer.kernels import ProductLaplace, ProductMatern32
from tests import naive
from tests.examples_of import METRICS, numbers

KERNELS = {"laplace": ProductLaplace, "matern32": ProductMatern32}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["none", "diagonal"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_where_rows_agree_in_a_column_the_derivative_in_it_is_zero(kernel, kind, dtype):
    X, Z = (100 + numbers(1, 3)).astype(dtype), (100 + numbers(1, 3, seed=1)).astype(dtype)
    Z[0, 1] = X[0, 1]
    made = kernel(1.2, metric=METRICS[kind](3))
    gradient = predictor_gradients(made, X, Z, np.ones(1, dtype=dtype))[0]
    assert gradient[1] == 0.0
    expected = naive.gradient(made, X[0].astype(np.float64), Z, np.ones(1))
    assert_allclose(gradient[[0, 2]], expected[[0, 2]], rtol=100 * np.finfo(dtype).eps * 100)
    assert (gradient[[0, 2]] != 0).all()


def test_rows_that_a_projection_rounds_apart_agree():
    X, Z, alpha = np.array([[0.1, 0.2]]), np.array([[0.3, 0.0], [3.0, 1.0], [-3.0, -1.0]]), np.array([1.0, 0.0, 0.0])
    metric = Mahalanobis(np.ones((2, 1)))
    assert metric.project(torch.from_numpy(X)) != metric.project(torch.from_numpy(Z[:1]))
    assert_array_equal(predictor_gradients(ProductLaplace(1.0, metric=metric), X, Z, alpha), [[0.0, 0.0]])


@pytest.mark.parametrize("kind", METRICS)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_the_median_is_that_of_sums_of_absolute_differences(kernel, kind):
    X, metric = numbers(15, 3), METRICS[kind](3)
    X[3] = X[4]
    L = np.linalg.cholesky(np.eye(3)) if metric is None or metric.factor is None else np.asarray(metric.factor)
    L = np.diag(L) if L.ndim == 1 else L
    sums = [np.abs((a - b) @ L).sum() for a, b in itertools.combinations(X, 2)]
    expected = np.median([s for s in sums if s > 0])
    assert_allclose(kernel(metric=metric).resolved(X).bandwidth, expected, rtol=1e-10)
    assert kernel(0.7, metric=metric).resolved(X).bandwidth == 0.7


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_under_a_full_metric_the_columns_are_those_of_the_projection(kernel):
    X, Z, L = numbers(6, 3), numbers(4, 3, seed=1), numbers(3, 3, seed=2)
    turned = kernel(1.2, metric=Mahalanobis(L)).matrix(X, Z)
    assert_allclose(turned, kernel(1.2).matrix(X @ L, Z @ L), rtol=1e-12)
    single = [kernel(1.2).matrix(X[:, [k]], Z[:, [k]]) for k in range(3)]
    assert_allclose(kernel(1.2).matrix(X, Z), single[0] * single[1] * single[2], rtol=1e-12)


def test_there_is_no_single_pair_of_weights():
    with pytest.raises(TypeError, match=r"ProductLaplace.* weights a column"):
        ProductLaplace(1.0).gradient_weights(numbers(3, 2))


def test_no_columns_and_scratch_change_nothing():
    kernel = ProductMatern32(1.1)
    x = kernel.prepare(torch.from_numpy(numbers(4, 3)))
    assert_array_equal(kernel.values(x, x, torch.full((4, 4), 9.0, dtype=torch.float64)), kernel.values(x, x))


def test_a_metric_may_be_given_as_lists_and_one_center_has_its_rounding_too():
    kernel = ProductLaplace(1.0, metric=Mahalanobis([[1.0], [1.0]]))
    gradients = predictor_gradients(kernel, np.array([[0.1, 0.2]]), np.array([[0.3, 0.0]]), np.ones(1))
    np.testing.assert_array_equal(gradients, 0.0)  # 0.1 + 0.2 is 0.3, but for rounding
