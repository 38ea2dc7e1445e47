"""The climb over bandwidth and ridge: it ends where no neighbor is cheaper, and moves only what it may."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from mercer import Mahalanobis
from mercer.kernels import Gaussian, Laplace, Linear, Matern32, ProductLaplace
from mercer.tabular_models.evidence import maximize_evidence
from mercer.tabular_models.fitters import ProcessFitter, RidgeFitter
from mercer.tabular_models.tuning import (
    BANDWIDTH_STEP,
    LARGEST_RIDGE,
    RIDGE_STEP,
    SMALLEST_GAIN,
    Freedom,
    tuned,
)
from tests import naive
from tests.examples_of import numbers
from tests.tabular_models.test_table import repeated_rows, smooth_rows, table_of

FITTERS = {"ridge": RidgeFitter(), "evidence": ProcessFitter(by_evidence=True)}
fitters = pytest.mark.parametrize("fitter", FITTERS.values(), ids=FITTERS.keys())
KERNELS = {
    "gaussian": Gaussian(5.0),
    "laplace": Laplace(5.0),
    "product": ProductLaplace(5.0),
    "composed": Gaussian(4.0) * Laplace(9.0),
    "diagonal": Gaussian(0.2, metric=Mahalanobis([0.5, 1.0, 2.0])),
    "low rank": Gaussian(5.0, metric=Mahalanobis([[1.0], [0.3], [0.0]])),
}


# ---- bandwidth and ridge -----------------------------------------------------------------------------------


def naive_cost(name, kernel, ridge, tables):
    """The mean over the rows of all tables of what the fitters minimize, from refits and from scipy's algebra."""
    total = 0.0
    for table in tables:
        K, y, w = naive.kernel_matrix(kernel, table.X, table.X), table.y.numpy(), table.mass.numpy()
        if name == "ridge":
            misses, _ = naive.ridge_leave_one_out(K, y, ridge, w)
            value = 0.5 * math.log(np.average((misses**2).mean(axis=1), weights=w))
        else:
            A = K + np.diag(ridge / w)
            scales = (y * np.linalg.solve(A, y)).sum(axis=0) / len(y)
            value = 0.5 * (np.log(2 * math.pi * math.e * scales).mean() + np.linalg.slogdet(A)[1] / len(y))
        total += len(table) * value
    return total / sum(len(table) for table in tables)


def parts_of(*tables):
    return [(table, table.warped("none")) for table in tables]


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("name", FITTERS)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_no_neighbor_of_the_end_is_clearly_cheaper(kernel, name, fine):
    table = table_of(*smooth_rows(20))
    found = tuned(kernel, 0.3, parts_of(table), FITTERS[name], Freedom(), fine=fine)
    here = naive_cost(name, found.kernel, found.ridge, [table])
    assert found.cost == pytest.approx(here, abs=1e-6)
    assert here < naive_cost(name, kernel, 0.3, [table]) - 0.05
    root = 0.5 if fine else 1.0
    for factor in (BANDWIDTH_STEP**root, BANDWIDTH_STEP**-root):
        assert naive_cost(name, found.kernel.rescaled(factor), found.ridge, [table]) > here - 1.001 * SMALLEST_GAIN
    for factor in (RIDGE_STEP**root, RIDGE_STEP**-root):
        if found.ridge * factor >= FITTERS[name].smallest_ridge:
            assert naive_cost(name, found.kernel, found.ridge * factor, [table]) > here - 1.001 * SMALLEST_GAIN
    assert found.kernel.single_metric() == kernel.single_metric()


@pytest.mark.parametrize("kernel", [Laplace(), Matern32(), Gaussian()], ids=["laplace", "matern32", "gaussian"])
def test_from_the_median_it_comes_close_to_the_top_of_the_evidence(kernel):
    """Bandwidth and noise of smooth kernels go up and down together: what no step along one axis gains, both may."""
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 2))
    table = table_of(X, np.sin(3 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.2 * random.normal(size=120))
    Z = table.warped("none")
    begun = kernel.resolved(Z, 0)
    found = tuned(begun, 1e-2, [(table, Z)], ProcessFitter(by_evidence=True), Freedom(), fine=True)
    tops = [maximize_evidence(begun, Z, table.y, np.array([start]), -3.0) for start in (-1.0, 0.0, 1.0)]
    assert found.cost < min(top.value for top in tops) + 0.05


@pytest.mark.parametrize("name", FITTERS)
def test_what_is_given_stays(name):
    table = table_of(*smooth_rows(20))
    fitter, parts = FITTERS[name], parts_of(table)
    both = tuned(Gaussian(0.3), 3.0, parts, fitter, Freedom(bandwidth=False, ridge=False), fine=True)
    assert (both.kernel, both.ridge) == (Gaussian(0.3), 3.0)
    assert both.cost == pytest.approx(naive_cost(name, Gaussian(0.3), 3.0, [table]))
    ridge = tuned(Gaussian(0.3), 3.0, parts, fitter, Freedom(bandwidth=False))
    assert ridge.kernel == Gaussian(0.3)
    assert ridge.ridge != 3.0
    bandwidth = tuned(Gaussian(0.3), 3.0, parts, fitter, Freedom(ridge=False))
    assert bandwidth.ridge == 3.0
    assert bandwidth.kernel.bandwidth != 0.3


@pytest.mark.parametrize("name", FITTERS)
def test_a_kernel_without_a_bandwidth_has_its_ridge_tuned(name):
    table = table_of(*smooth_rows(20))
    found = tuned(Linear(), 1e-2, parts_of(table), FITTERS[name], Freedom())
    assert found.kernel == Linear()
    for factor in (RIDGE_STEP, 1 / RIDGE_STEP):
        cost = naive_cost(name, Linear(), found.ridge * factor, [table])
        assert cost > naive_cost(name, Linear(), found.ridge, [table]) - 1.001 * SMALLEST_GAIN


@pytest.mark.parametrize("name", FITTERS)
def test_several_parts_count_by_their_rows_and_weights_count(name):
    X, y, w = repeated_rows(30)
    X = X + 1e-3 * np.arange(30)[:, None]  # No two rows are equal.
    table = table_of(X, y, w)
    tables = [table.take(np.arange(20)), table.take(np.arange(20, 30))]
    found = tuned(Gaussian(2.0), 0.3, parts_of(*tables), FITTERS[name], Freedom())
    assert found.cost == pytest.approx(naive_cost(name, found.kernel, found.ridge, tables), abs=1e-8)
    assert found.cost != pytest.approx(naive_cost(name, found.kernel, found.ridge, [table]), abs=1e-3)
    for factor in (BANDWIDTH_STEP, 1 / BANDWIDTH_STEP):
        cost = naive_cost(name, found.kernel.rescaled(factor), found.ridge, tables)
        assert cost > found.cost - 1.001 * SMALLEST_GAIN


@fitters
def test_the_ridge_stays_between_its_bounds(fitter):
    X, _ = smooth_rows(20)
    exact, noise = table_of(X, X[:, 0]), table_of(X, numbers(20, seed=9))
    smallest = tuned(Gaussian(2.0), 1e-3, parts_of(exact), fitter, Freedom())
    assert fitter.smallest_ridge * 0.99 < smallest.ridge < 1e-4
    assert tuned(Gaussian(2.0), 1.0, parts_of(noise), fitter, Freedom()).ridge <= 1.01 * LARGEST_RIDGE
    # A start out of the bounds is brought in.
    assert tuned(Gaussian(2.0), 1e-30, parts_of(exact), fitter, Freedom()).ridge >= 0.99 * fitter.smallest_ridge
    assert tuned(Gaussian(2.0), 1e30, parts_of(noise), fitter, Freedom()).ridge <= 1.01 * LARGEST_RIDGE
    # One that was given is not.
    assert tuned(Gaussian(2.0), 1e-9, parts_of(noise), RidgeFitter(), Freedom(ridge=False)).ridge == 1e-9


def test_a_noise_floor_bounds_the_noise():
    X, _ = smooth_rows(20)
    found = tuned(
        Gaussian(2.0), 0.5, parts_of(table_of(X, X[:, 0])), ProcessFitter(0.03, by_evidence=True), Freedom(), fine=True
    )
    assert 0.03 * 0.99 < found.ridge < 0.1


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_matrices_of_rescaled_kernels_are_those_of_the_kernels(kernel):
    """The climb computes distances once, and must not change them."""
    Z = torch.from_numpy(numbers(7, 3))
    of_factor = kernel.matrices(Z)
    for factor in (1.0, 0.5, 2.0, 1.0):
        assert_allclose(of_factor(factor), naive.kernel_matrix(kernel.rescaled(factor), Z, Z), atol=1e-12)
