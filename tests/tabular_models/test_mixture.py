"""The average of several processes: its moments and its density against sums written out, and draws from it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from mercer.kernels import Gaussian, Laplace
from mercer.tabular_models.mixture import covariance_of, draw, function_variance, means_of, predictive_of
from tests.examples_of import numbers
from tests.tabular_models.test_machine import AT, machine, naive_process

SHARES = (0.6, 0.4)
SCALES = (np.array([1.5, 0.3]), np.array([0.8, 2.0]))
# What corrections multiply the deviations of each process by, and what they make of the tails.
FACTORS, TAILS = np.exp(0.4 * numbers(2, 5, 2, seed=3)), np.array([np.inf, 10.0])


@pytest.fixture(params=[False, True], ids=["one piece", "leaves"])
def processes(request):
    """Two machines that are averaged, and the mean and covariance of each by hand, for an output scale of 1."""
    made = [machine(kernel, cut=request.param) for kernel in (Gaussian(1.3), Laplace(1.1))]
    given = [m.changed(share=s, output_scales=o) for (m, _), s, o in zip(made, SHARES, SCALES, strict=True)]
    return given, [naive_process(m, y, AT) for m, y in made]


def naive_moments(processes, moments, factors):
    """Mean and covariance of an observation under the average, an output at a time."""
    mean = sum(m.share * each for m, (each, _) in zip(processes, moments, strict=True))
    covariance = np.zeros((5, 5, 2))
    for m, f, (each, unit) in zip(processes, factors, moments, strict=True):
        for c in range(2):
            own = m.output_scales[c] * (unit + m.ridge * np.eye(5)) * np.outer(f[:, c], f[:, c])
            covariance[:, :, c] += m.share * (own + np.outer(each[:, c] - mean[:, c], each[:, c] - mean[:, c]))
    return mean, covariance


def test_moments_are_those_of_the_sum_written_out(processes):
    given, moments = processes
    mean, covariance = naive_moments(given, moments, np.ones_like(FACTORS))
    for working_memory in (64.0, 1e-4):
        assert_allclose(means_of(given, AT, working_memory)[0], mean, atol=1e-10)
        predictive = predictive_of(given, AT, working_memory)
        assert_allclose(predictive.mean(), mean, atol=1e-10)
        assert_allclose(predictive.variance(), np.einsum("iic->ic", covariance), atol=1e-10)
    for found, (expected, _) in zip(means_of(given, AT)[1], moments, strict=True):
        assert_allclose(found, expected, atol=1e-10)
    assert_allclose(covariance_of(given, AT, np.ones_like(FACTORS)), covariance, atol=1e-10)
    assert_allclose(covariance_of(given, AT, FACTORS), naive_moments(given, moments, FACTORS)[1], atol=1e-10)


def test_the_variance_of_the_function_is_without_noise(processes):
    given, moments = processes
    expected = [unit.diagonal()[:, None] * m.output_scales for m, (_, unit) in zip(given, moments, strict=True)]
    assert_allclose(function_variance(given, predictive_of(given, AT).deviations), expected, atol=1e-10)


def test_the_density_is_the_weighted_sum_of_densities(processes):
    given, moments = processes
    y = numbers(5, 2, seed=8)
    expected = np.zeros(5)
    for m, (mean, unit) in zip(given, moments, strict=True):
        deviations = np.sqrt((unit.diagonal()[:, None] + m.ridge) * m.output_scales)
        expected += m.share * np.prod(norm.pdf(y, mean, deviations), axis=1)
    for working_memory in (64.0, 1e-4):
        assert_allclose(predictive_of(given, AT, working_memory).joint_log_densities(y), np.log(expected), atol=1e-9)


def test_draws_have_the_moments_of_the_average(processes):
    given, moments = processes
    mean, covariance = naive_moments(given, moments, FACTORS)
    drawn = draw(given, AT, 20_000, np.random.RandomState(0), FACTORS, TAILS)
    assert drawn.shape == (5, 2, 20_000)
    for c in range(2):
        size = np.sqrt(covariance[:, :, c].diagonal())
        assert_allclose(drawn[:, c].mean(axis=1), mean[:, c], atol=0.03 * size.max())
        assert_allclose(
            np.cov(drawn[:, c]) / np.outer(size, size), covariance[:, :, c] / np.outer(size, size), atol=0.05
        )
    again = draw(given, AT, 20_000, np.random.RandomState(0), FACTORS, TAILS)
    assert_array_equal(drawn, again)
    # Each row of a draw has the heavy tails of its target.
    predictive = predictive_of(given, AT)
    predictive = predictive._replace(deviations=predictive.deviations * FACTORS, tails=TAILS)
    for q in (0.001, 0.1, 0.999):
        assert_allclose(
            (drawn < predictive.quantiles(q)[:, :, None]).mean(axis=2), q, atol=4 * np.sqrt(q * (1 - q) / 2e4)
        )
