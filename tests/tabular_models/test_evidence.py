"""The evidence against the density of scipy, its derivatives against differences, and its climb."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from mercer import Mahalanobis
from mercer.kernels import Gaussian, Laplace, Linear, Matern52, ProductMatern32
from mercer.tabular_models.evidence import (
    LOG_SCALE_BOUNDS,
    length_scale_derivatives,
    matrix_evidence,
    maximize_evidence,
    negative_log_evidence,
)
from tests import naive
from tests.examples_of import CLOSED_FORM, numbers

SCALES = np.array([0.2, -0.4, 0.7])


def problem(n=14, outputs=1, seed=0):
    Z = torch.from_numpy(numbers(n, 3, seed=seed))
    return Z, torch.stack([torch.sin(2 * Z[:, 0]) + 0.3 * Z[:, k] for k in range(outputs)], dim=1)


def covariance(kernel, Z, log_scales, log_noise, weights=None):
    """K + noise / w under a length scale a column."""
    kernel = kernel.with_metric(Mahalanobis(np.exp(-np.broadcast_to(log_scales, (3,)))))
    noises = math.exp(log_noise) / (np.ones(len(Z)) if weights is None else np.asarray(weights))
    return naive.kernel_matrix(kernel, Z, Z) + np.diag(noises)


def largest_log_density(y, A):
    """The largest over s of log N(y; 0, s A)."""
    return -minimize_scalar(
        lambda log_s: -multivariate_normal.logpdf(y, cov=math.exp(log_s) * A), (-3, 3), options={"xtol": 1e-10}
    ).fun


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_it_is_the_log_density_at_the_best_output_scale(outputs, weighted):
    Z, y = problem(outputs=outputs)
    weights = torch.linspace(0.5, 3.0, len(Z), dtype=torch.float64) if weighted else None
    for kernel in (Gaussian(1.3), Laplace(0.9), ProductMatern32(1.4), 0.3 * Gaussian(0.7) + Linear()):
        found = negative_log_evidence(kernel, Z, y, SCALES, math.log(0.1), weights)
        A = covariance(kernel, Z, SCALES, math.log(0.1), weights)
        expected = np.mean([largest_log_density(column, A) for column in y.numpy().T]) / len(Z)
        assert found.value == pytest.approx(-expected, abs=1e-8)


@pytest.mark.parametrize("outputs", [1, 2])
def test_at_a_given_output_scale_it_is_the_log_density_there(outputs):
    Z, y = problem(outputs=outputs)
    given = torch.tensor([0.7, 2.0], dtype=torch.float64)[:outputs]

    def value(theta):
        A = covariance(Laplace(0.9), Z, theta[:-1], theta[-1])
        densities = [
            multivariate_normal.logpdf(column, cov=s * A) for column, s in zip(y.numpy().T, given.tolist(), strict=True)
        ]
        return -np.mean(densities) / len(Z)

    theta, step = np.append(SCALES, math.log(0.1)), 1e-5
    found = negative_log_evidence(Laplace(0.9), Z, y, SCALES, theta[-1], output_scales=given)
    assert found.value == pytest.approx(value(theta), abs=1e-10)
    slopes = [(value(theta + step * e) - value(theta - step * e)) / (2 * step) for e in np.eye(4)]
    assert_allclose(np.append(found.by_scales, found.by_noise), slopes, atol=1e-7)


@pytest.mark.parametrize("outputs", [1, 2])
def test_repeats_make_it_the_evidence_of_every_measurement(outputs):
    """Rows measured several times: the evidence of the means and of their scatter moves as that of all rows does."""
    random = np.random.default_rng(1)
    Z, means = problem(8, outputs)
    counts = np.array([1, 3, 2, 1, 1, 4, 2, 1])
    group = np.repeat(np.arange(8), counts)
    y = means.numpy()[group] + 0.5 * random.normal(size=(len(group), outputs))
    means = np.array([y[group == j].mean(axis=0) for j in range(8)])
    scatter = torch.from_numpy(((y - means[group]) ** 2).sum(axis=0))
    short, long = [], []
    for scales, log_noise in ((SCALES, -1.0), (np.array([0.3]), -3.0), (np.zeros(1), 0.4)):
        found = negative_log_evidence(
            Gaussian(1.3),
            Z,
            torch.from_numpy(means),
            scales,
            log_noise,
            torch.from_numpy(counts).double(),
            (len(group) - 8, scatter),
        )
        short.append(found.value)
        long.append(negative_log_evidence(Gaussian(1.3), Z[group], torch.from_numpy(y), scales, log_noise).value)
    assert np.ptp(short) > 0.01
    assert_allclose(np.diff(short), np.diff(long), atol=1e-10)


@pytest.mark.parametrize("repeats", [None, (3, torch.tensor([0.4, 0.7], dtype=torch.float64))])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_given_matrix_has_the_same_evidence(weighted, repeats):
    Z, y = problem(outputs=2)
    weights = torch.linspace(0.5, 3.0, len(Z), dtype=torch.float64) if weighted else None
    for kernel in (Gaussian(1.3), Laplace(0.9), Linear()):
        K = torch.from_numpy(naive.kernel_matrix(kernel, Z, Z))
        before = K.clone()
        expected = negative_log_evidence(kernel, Z, y, np.zeros(1), math.log(0.1), weights, repeats).value
        assert matrix_evidence(K, y, math.log(0.1), weights, repeats) == pytest.approx(expected, abs=1e-10)
        assert torch.equal(K, before)
    assert matrix_evidence(-K, y, math.log(0.1)) == math.inf


@pytest.mark.parametrize("scales", [SCALES, np.array([0.3])], ids=["ard", "shared"])
@pytest.mark.parametrize("kernel", CLOSED_FORM.values(), ids=CLOSED_FORM.keys())
def test_gradients_equal_finite_differences(kernel, scales):
    Z, y = problem(10, outputs=2)
    weights = torch.linspace(0.5, 3.0, 10, dtype=torch.float64)
    repeats = (3, torch.tensor([0.4, 0.7], dtype=torch.float64))

    def value(theta):
        return negative_log_evidence(kernel, Z, y, theta[:-1], theta[-1], weights, repeats)

    theta, step = np.append(scales, -1.5), 1e-5
    found = value(theta)
    assert found.by_scales.shape == scales.shape
    for k, got in enumerate([*found.by_scales, found.by_noise]):
        move = step * (np.arange(len(theta)) == k)
        expected = (value(theta + move).value - value(theta - move).value) / (2 * step)
        assert got == pytest.approx(expected, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("metric", [None, Mahalanobis([0.5, 1.0, 2.0]), Mahalanobis(numbers(3, 2, seed=5))])
@pytest.mark.parametrize("kernel", CLOSED_FORM.values(), ids=CLOSED_FORM.keys())
def test_length_scale_derivatives_equal_autograd(kernel, metric):
    Z, _ = problem(6)
    G = torch.from_numpy(numbers(6, 6, seed=4))
    G = G + G.T
    projected = Z if metric is None else metric.project(Z)
    log_scales = torch.zeros(projected.shape[1], dtype=torch.float64, requires_grad=True)
    rows = projected * torch.exp(-log_scales)
    plain = kernel.with_metric(None)
    total = sum(G[i, j] * naive.value(plain, rows[i], rows[j]) for i in range(6) for j in range(6)) / 2
    (expected,) = torch.autograd.grad(total, log_scales)
    x = kernel.with_metric(metric).prepare(Z)
    values, terms = kernel.with_metric(metric).values_and_terms(x, x)
    assert_allclose(length_scale_derivatives(terms, G, len(log_scales)), expected, rtol=1e-8, atol=1e-10)
    assert_allclose(values, kernel.with_metric(metric).matrix(Z), atol=1e-12)


@pytest.mark.parametrize("start", [np.zeros(1), np.zeros(3)], ids=["shared", "ard"])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern52(1.0), ProductMatern32(1.0)])
def test_the_climb_ends_where_the_gradient_is_zero_inside_the_bounds(kernel, start):
    Z, y = problem(40)
    y = y - y.mean() + 0.2 * torch.from_numpy(numbers(40, 1, seed=9))
    begun = negative_log_evidence(kernel, Z, y, start, math.log(0.5))
    found = maximize_evidence(kernel, Z, y, start, math.log(0.5), max_iter=200)
    ended = negative_log_evidence(kernel, Z, y, found.log_scales, found.log_noise)
    assert found.value == ended.value < begun.value - 0.01
    assert abs(ended.by_noise) < 2e-3
    inside = found.log_scales < LOG_SCALE_BOUNDS[1] - 1e-6
    assert inside.any()
    assert np.abs(ended.by_scales[inside]).max() < 2e-3
    assert (ended.by_scales[~inside] <= 0).all()


def test_the_noise_stays_above_its_floor():
    Z, _ = problem(25)
    y = Z[:, :1] ** 2
    for floor in (1e-2, 1e-4):
        found = maximize_evidence(Gaussian(1.0), Z, y - y.mean(), np.zeros(3), 0.0, noise_floor=floor)
        assert math.exp(found.log_noise) == pytest.approx(floor, rel=1e-6)
    # a start out of the bounds is brought in
    held = maximize_evidence(Gaussian(1.0), Z, y, np.full(3, 99.0), -99.0, noise_floor=0.1, out_of_time=lambda: True)
    assert_allclose(held.log_scales, LOG_SCALE_BOUNDS[1])
    assert math.exp(held.log_noise) == pytest.approx(0.1)


def test_out_of_time_keeps_the_best_so_far():
    Z, y = problem(20)
    start = negative_log_evidence(Gaussian(1.0), Z, y, np.zeros(3), -1.0)
    at_once = maximize_evidence(Gaussian(1.0), Z, y, np.zeros(3), -1.0, out_of_time=lambda: True)
    assert at_once.n_evaluations == 1
    assert_allclose(at_once.log_scales, np.zeros(3))
    assert at_once.value == start.value


def test_the_best_point_is_kept_where_a_step_goes_too_far(monkeypatch):
    Z, y = problem(20)
    seen = []

    def spy(*args):
        seen.append(negative_log_evidence(*args))
        return seen[-1]

    monkeypatch.setattr("mercer.tabular_models.evidence.negative_log_evidence", spy)
    went_too_far = 0
    for start in (-1.0, 0.0, 3.0):
        for most in (2, 4, 6):
            seen.clear()
            found = maximize_evidence(
                Gaussian(1.0), Z, y, np.full(3, start), -1.0, out_of_time=lambda most=most: len(seen) >= most
            )
            values = [evidence.value for evidence in seen]
            assert found.n_evaluations == len(values) <= most
            assert found.value == min(values)
            assert found.value == negative_log_evidence(Gaussian(1.0), Z, y, found.log_scales, found.log_noise).value
            went_too_far += values[-1] > min(values)
    assert went_too_far


def test_weights_and_repeats_reach_the_climb():
    Z, y = problem(20)
    options = {
        "weights": torch.linspace(0.1, 9.0, 20, dtype=torch.float64),
        "repeats": (30, torch.tensor([20.0]).double()),
    }
    found = maximize_evidence(Gaussian(1.0), Z, y, np.zeros(1), -1.0, **options)
    again = negative_log_evidence(Gaussian(1.0), Z, y, found.log_scales, found.log_noise, *options.values())
    assert found.value == again.value
    assert abs(again.by_noise) < 2e-3
    assert math.exp(found.log_noise) > 2 * math.exp(maximize_evidence(Gaussian(1.0), Z, y, np.zeros(1), -1.0).log_noise)


def test_a_matrix_without_a_factor_is_infinitely_unlikely_and_the_climb_goes_on():
    Z, y = problem(10)
    broken = negative_log_evidence(Linear(), 1e200 * Z, y, np.zeros(1), -1.0)
    assert broken.value == math.inf
    assert (broken.by_scales, broken.by_noise) == (np.zeros(1), 0.0)


def test_a_target_of_zeros_has_a_finite_evidence():
    Z, y = problem(10)
    found = negative_log_evidence(Gaussian(1.0), Z, torch.zeros_like(y), SCALES, -1.0)
    assert math.isfinite(found.value)
    assert np.isfinite([*found.by_scales, found.by_noise]).all()
