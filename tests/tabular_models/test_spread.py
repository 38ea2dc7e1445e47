"""What left-out rows say of width and tails: the gradient, the recovery of what was put in, and few rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.stats import norm

from mercer.tabular_models.predictive import Predictive
from mercer.tabular_models.spread import EXPONENT_PRIOR, SCALE_PRIOR, Problem, Spread, covering_factors, fit_spread
from tests.examples_of import numbers

GAUSSIAN = np.array([np.inf])


def claimed(n, k=1, seed=0):
    """What k components claim of n rows."""
    deviations = np.exp(0.8 * numbers(k, n, 1, seed=seed))
    return Predictive(np.full(k, 1.0 / k), numbers(k, n, 1, seed=seed + 1), deviations, GAUSSIAN)


def problem(n=40, k=2):
    raw = claimed(n, k)
    relative = np.log(raw.deviations / np.exp(np.log(raw.deviations).mean(axis=1))[:, None])[..., 0]
    y, mass = numbers(n, seed=7), np.linspace(0.5, 1.5, n)
    return Problem(y, raw.shares, raw.means[..., 0], raw.deviations[..., 0], relative, mass)


@pytest.mark.parametrize("tails", [np.inf, 4.0])
def test_the_gradient_of_the_loss_is_that_of_differences(tails):
    made, theta = problem(), np.array([0.3, -0.2])
    expected = approx_fprime(theta, lambda x: made.loss(x, tails)[0], 1e-6)
    assert_allclose(made.loss(theta, tails)[1], expected, rtol=1e-4)


def test_the_loss_is_the_penalized_likelihood_written_out():
    made, theta = problem(), np.array([0.3, -0.2])
    total = 0.0
    for i in range(40):
        deviations = made.deviations[:, i] * np.exp(0.3 - 0.2 * made.relative[:, i])
        density = made.shares @ norm.pdf(made.y[i], made.means[:, i], deviations)
        total -= made.mass[i] * np.log(density)
    total += 0.5 * (0.3 / SCALE_PRIOR) ** 2 + 0.5 * (0.2 / EXPONENT_PRIOR) ** 2
    assert made.loss(theta, np.inf)[0] == pytest.approx(total)


@pytest.mark.parametrize("tails", [np.inf, 4.0])
def test_scale_exponent_and_tails_are_found(tails):
    raw, random = claimed(3000), np.random.default_rng(5)
    errors = random.normal(size=3000) if np.isinf(tails) else random.standard_t(tails, size=3000) * 0.5**0.5
    reference = np.exp(np.log(raw.deviations).mean())
    y = raw.means[0] + (1.5 * reference * (raw.deviations[0] / reference) ** 0.6) * errors[:, None]
    found = fit_spread(raw, y, np.ones(3000), n_chosen=0)
    assert found.scale[0] == pytest.approx(1.5, rel=0.08)
    assert found.exponent[0] == pytest.approx(0.6, abs=0.08)
    assert found.tails[0] > 25 if np.isinf(tails) else 3.0 <= found.tails[0] < 6.0
    corrected = found.corrected(raw)
    inside = np.abs(corrected.cumulative(y) - 0.5) < 0.45
    assert inside.mean() == pytest.approx(0.9, abs=0.02)
    thirds = np.array_split(np.argsort(raw.deviations[0, :, 0]), 3)
    assert_allclose([inside[third].mean() for third in thirds], 0.9, atol=0.035)


def test_only_ratios_of_weights_count_and_rows_without_weight_do_not():
    raw, y, w = claimed(60, 2), numbers(60, 1, seed=9), np.where(np.arange(60) < 40, 1.0, 1e-12)
    few = raw.of_rows(np.arange(40))
    for a, b in zip(fit_spread(raw, y, w, 0)[:1], fit_spread(raw, y, 7.0 * w, 0)[:1], strict=True):
        assert_allclose(a, b, rtol=1e-4)
    part = fit_spread(few, y[:40], np.full(40, 3.0), 0)
    whole = fit_spread(few, y[:40], np.ones(40), 0)
    assert_allclose(part.scale, whole.scale)
    assert part.tails == pytest.approx(whole.tails)


def test_numbers_that_were_chosen_enlarge_the_variance():
    raw, y = claimed(50), claimed(50).means[0] + numbers(50, 1, seed=3)
    plain, wider = (fit_spread(raw, y, np.ones(50), p) for p in (0, 10))
    assert_allclose(wider.scale**2, plain.scale**2 * 50 / 40)
    assert_allclose(fit_spread(raw, y, np.ones(50), 49).scale ** 2, 2 * plain.scale**2)


def test_beyond_the_deviations_seen_the_correction_is_that_of_the_nearest():
    raw, y = claimed(200), claimed(200).means[0] + numbers(200, 1, seed=3)
    found = fit_spread(raw, y, np.ones(200), 0)
    assert found.exponent[0] < 0.5
    largest = raw.deviations.max()
    factors = found.factors(np.array([largest, 100 * largest]).reshape(1, 2, 1))
    assert factors[0, 0, 0] == pytest.approx(factors[0, 1, 0])


def test_no_correction_changes_nothing():
    raw = claimed(5, 2)
    corrected = Spread.none(2, 1).corrected(raw)
    assert_allclose(corrected.deviations, raw.deviations)
    assert np.isinf(corrected.tails).all()


def test_intervals_hold_their_share_where_half_of_the_errors_are_of_copies():
    random = np.random.default_rng(0)
    n = 400
    y = np.where(np.arange(n) % 2 == 0, 1e-4, 1.0) * random.normal(size=n)
    raw = Predictive(np.ones(1), np.zeros((1, n, 1)), np.ones((1, n, 1)), np.full(1, np.inf))
    found = fit_spread(raw, y[:, None], np.ones(n), 2).corrected(raw)
    low, high = found.quantiles(0.05)[:, 0], found.quantiles(0.95)[:, 0]
    inside = np.mean((low <= y) & (y <= high))
    assert 0.9 - 0.016 <= inside <= 0.91
    # Errors that are what they claim to be are left alone.
    honest = random.normal(size=(n, 1))
    assert_allclose(covering_factors(raw._replace(deviations=1.1 * raw.deviations), honest, np.ones(n)), 1.0)


def test_factors_that_cover_are_the_smallest_that_do():
    errors = np.linspace(0.0, 10.0, 200)[:, None]
    raw = Predictive(np.ones(1), np.zeros((1, 200, 1)), np.ones((1, 200, 1)), np.full(1, np.inf))
    factor = covering_factors(raw, errors, np.ones(200))[0]
    wanted = int(np.ceil((0.9 - np.sqrt(0.09 / 200)) * 200))
    assert_allclose(factor * norm.ppf(0.95), errors[wanted - 1, 0], rtol=1e-3)
