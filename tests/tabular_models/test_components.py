"""A fitted machine against the Gaussian process it stands for, and the softmax that calibrates a classifier."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax

from mercer import ColumnWarp, Mahalanobis
from mercer.kernels import Gaussian, Laplace, ProductMatern32
from mercer.tabular_models import calibration
from mercer.tabular_models.calibration import fit_calibration
from mercer.tabular_models.component import Component
from tests import naive
from tests.examples_of import numbers

KERNELS = {
    "gaussian": Gaussian(1.3),
    "full": Laplace(1.1, metric=Mahalanobis(numbers(2, 2, seed=1))),
    "product": ProductMatern32(1.4),
}
RIDGE, SHARED = 0.5, 0.3


def component(kernel, warp="none", shared=SHARED, n=12, **options):
    """A component on n rows with two outputs, the rows it was fitted on, and its targets."""
    X, y = np.exp(numbers(n, 2)), numbers(n, 2, seed=2)
    columns = ColumnWarp(warp).fit(X)
    Z = columns.transform(X)
    A = kernel.matrix(Z) + RIDGE * np.eye(n)
    made = Component(
        kernel, columns, Z, np.linalg.solve(A, y), RIDGE, 1.0, np.ones(2), shared, np.linalg.cholesky(A), **options
    )
    return made, X, y


def naive_process(kernel, Z, y, x, shared):
    """Mean and covariance at x of the process k + shared 1[x = x'] from observations with noise RIDGE - shared."""

    def k(a, b):
        return naive.kernel_matrix(kernel, a, b) + shared * (a[:, None] == b[None]).all(axis=2)

    A, K = k(Z, Z) + (RIDGE - shared) * np.eye(len(Z)), k(x, Z)
    return K @ np.linalg.solve(A, y), k(x, x) - K @ np.linalg.solve(A, K.T)


@pytest.mark.parametrize("shared", [0.0, SHARED])
@pytest.mark.parametrize("warp", ["none", "log"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_mean_variance_and_covariance_are_those_of_the_process_with_shared_noise(kernel, warp, shared):
    fitted, X, y = component(kernel, warp, shared)
    at = np.concatenate([np.exp(numbers(3, 2, seed=5)), X[[4, 4, 1]], np.exp(numbers(1, 2, seed=6)).repeat(2, axis=0)])
    mean, covariance = naive_process(kernel, fitted.basis, y, fitted.columns.transform(at), shared)
    for working_memory in (64.0, 1e-4):
        assert_allclose(fitted.mean(at, working_memory), mean, atol=1e-10)
        assert_allclose(fitted.unit_variance(at, working_memory), covariance.diagonal(), atol=1e-10)
    assert_allclose(fitted.unit_covariance(at), covariance, atol=1e-10)
    assert fitted.measurement_noise == pytest.approx(RIDGE - shared)


def test_a_copy_is_known_whatever_the_sign_of_its_zeros():
    X = np.array([[0.0, 1.0], [2.0, -1.0]])
    columns = ColumnWarp(standardize=False).fit(X)
    A = Gaussian(1.0).matrix(X) + RIDGE * np.eye(2)
    fitted = Component(
        Gaussian(1.0), columns, X, np.ones((2, 1)), RIDGE, 1.0, np.ones(1), SHARED, np.linalg.cholesky(A)
    )
    for question in (fitted.mean, fitted.unit_variance, fitted.unit_covariance):
        assert_array_equal(question(np.array([[-0.0, 1.0]])), question(X[:1]))


def test_landmark_factors_add_what_the_rows_say():
    kernel, X, landmarks = Gaussian(1.3), numbers(20, 2), numbers(5, 2, seed=1)
    K_mm, K_nm = kernel.matrix(landmarks), kernel.matrix(X, landmarks)
    B = K_mm + K_nm.T @ K_nm / RIDGE
    columns = ColumnWarp(standardize=False).fit(X)
    factors = {"lower": np.linalg.cholesky(K_mm), "gained": np.linalg.cholesky(B)}
    fitted = Component(kernel, columns, landmarks, np.ones((5, 1)), RIDGE, 1.0, np.ones(1), **factors)
    at = numbers(4, 2, seed=3)
    k = kernel.matrix(at, landmarks)
    expected = kernel.matrix(at) - k @ np.linalg.solve(K_mm, k.T) + k @ np.linalg.solve(B, k.T)
    assert_allclose(fitted.unit_covariance(at), expected, atol=1e-8)
    assert_allclose(fitted.unit_variance(at), expected.diagonal(), atol=1e-8)


def test_without_a_factor_there_are_means_alone():
    fitted, X, _ = component(Gaussian(1.3))
    bare = fitted._replace(lower=None)
    assert_array_equal(bare.mean(X), fitted.mean(X))
    with pytest.raises(ValueError, match="no Cholesky factor"):
        bare.unit_variance(X)


@pytest.mark.parametrize("warp", ["none", "log", "rank"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())
def test_gradients_are_in_the_units_of_the_columns(kernel, warp):
    fitted, X, _ = component(kernel, warp)
    at = np.sort(X, axis=0)[3:7] * 0.43 + np.sort(X, axis=0)[4:8] * 0.57
    for x, got in zip(at, fitted.gradients(at), strict=True):
        for c in range(2):
            expected = approx_fprime(x, lambda v, c=c: fitted.mean(v[None])[0, c], 1e-7)
            assert_allclose(got[c], expected, rtol=1e-4, atol=1e-5 * np.abs(fitted.alpha).max())


def test_contributions_add_up_and_importances_sum_to_one():
    for kernel in KERNELS.values():
        fitted, X, _ = component(kernel, shared=0.0)
        assert_allclose(fitted.contributions(X).sum(axis=1), fitted.mean(X), atol=1e-10)
        assert fitted.importances().sum() == pytest.approx(1.0)
    fitted, _, _ = component(Gaussian(1.3, metric=Mahalanobis([3.0, 1.0])))
    assert_allclose(fitted.importances(), [0.9, 0.1])
    fitted, _, _ = component(Gaussian(1.3))
    squares = (fitted.gradients(np.exp(numbers(12, 2))) * fitted.columns.scale_) ** 2
    assert_allclose(fitted.importances(), squares.sum(axis=(0, 1)) / squares.sum(), rtol=1e-8)
    assert_allclose(fitted._replace(alpha=0 * fitted.alpha).importances(), [0.5, 0.5])


# ---- calibration -------------------------------------------------------------------------------------------


def labelled_outputs(n=4000, scale=3.0, offsets=(0.5, -0.2, 0.0), seed=0):
    random = np.random.default_rng(seed)
    outputs = random.normal(size=(n, 3))
    p = np.exp(log_softmax(scale * outputs + offsets, axis=1))
    return outputs, (p.cumsum(axis=1) < random.uniform(size=(n, 1))).sum(axis=1)


def naive_loss(theta, outputs, labels, weights, log_shares):
    log_p = log_softmax(math.exp(theta[0]) * outputs + theta[1:], axis=1)
    penalty = calibration.PRIOR_ROWS / 2 * ((theta[1:] - log_shares) ** 2).sum()
    return penalty - sum(w * row[label] for w, row, label in zip(weights, log_p, labels, strict=True))


def test_the_softmax_is_the_naive_minimum_and_its_gradient_that_of_differences(monkeypatch):
    outputs, labels = labelled_outputs(40)
    weights, log_shares = np.linspace(0.5, 2.0, 40), np.log([0.2, 0.3, 0.5])
    asked = []

    def spy(loss, *args, **options):
        asked.append(loss)
        return minimize(loss, *args, **options)

    monkeypatch.setattr(calibration, "minimize", spy)
    fitted = fit_calibration(outputs, labels, weights, log_shares)
    theta = np.array([0.3, 0.1, -0.4, 0.9])
    value, slope = asked[0](theta)
    given = (outputs, labels, weights, log_shares)
    assert value == pytest.approx(naive_loss(theta, *given))
    assert_allclose(slope, approx_fprime(theta, naive_loss, 1e-7, *given), rtol=1e-4)
    expected = minimize(naive_loss, np.zeros(4), args=given, tol=1e-10).x
    assert_allclose([math.log(fitted.scale), *fitted.offsets], expected, atol=2e-2)


def test_it_recovers_the_scale_and_the_offsets():
    outputs, labels = labelled_outputs()
    shares = np.bincount(labels) / len(labels)
    fitted = fit_calibration(outputs, labels, np.ones(len(labels)), np.log(shares))
    assert fitted.scale == pytest.approx(3.0, rel=0.1)
    assert_allclose(fitted.offsets - fitted.offsets[2], [0.5, -0.2, 0.0], atol=0.15)
    probabilities = np.exp(fitted.log_probabilities(outputs))
    assert_allclose(probabilities.sum(axis=1), 1.0)
    # honest: classes are as frequent as they are probable, and so among the surest rows
    assert_allclose(probabilities.mean(axis=0), shares, atol=1e-3)
    sure = probabilities.max(axis=1) > 0.9
    right = probabilities.argmax(axis=1) == labels
    assert right[sure].mean() == pytest.approx(probabilities.max(axis=1)[sure].mean(), abs=0.02)


def test_weights_are_repeats_and_outputs_that_say_nothing_leave_the_shares():
    outputs, labels = labelled_outputs(60)
    weights = np.random.default_rng(1).integers(1, 4, size=60)
    log_shares = np.log([0.2, 0.3, 0.5])
    weighted = fit_calibration(outputs, labels, weights.astype(float), log_shares)
    repeated = fit_calibration(
        outputs.repeat(weights, axis=0), labels.repeat(weights), np.ones(weights.sum()), log_shares
    )
    assert weighted.scale == pytest.approx(repeated.scale, rel=1e-4)
    assert_allclose(weighted.offsets, repeated.offsets, atol=1e-3)
    shares = np.bincount(labels) / 60
    silent = fit_calibration(np.zeros((60, 3)), labels, np.ones(60), np.log(shares))
    assert_allclose(np.exp(silent.log_probabilities(np.zeros((1, 3))))[0], shares, atol=1e-3)


def test_tensors_of_single_precision_are_taken():
    fitted, X, _ = component(Gaussian(1.3), shared=0.0)
    single = fitted._replace(basis=fitted.basis.astype(np.float32), alpha=fitted.alpha.astype(np.float32))
    assert single.mean(X.astype(np.float32)).dtype == np.float32
    assert_allclose(single.mean(X.astype(np.float32)), fitted.mean(X), atol=1e-4)
