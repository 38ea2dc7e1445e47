"""The predictive distribution against scipy's bells, sums written out and integrals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm, t

from mercer.tabular_models.predictive import Predictive, bell_quantile, likeliest_log_densities, log_bell
from tests.examples_of import numbers

SHARES = np.array([0.5, 0.3, 0.2])
TAILS = np.array([np.inf, 3.5])


def predictive(shares=SHARES, n=4):
    """Three components far apart at some rows, for two targets: the first Gaussian, the second with heavy tails."""
    k = len(shares)
    return Predictive(shares, 3.0 * numbers(k, n, 2), np.exp(numbers(k, n, 2, seed=1)), TAILS)


def bell(j):
    """scipy's bell of variance 1 for target j."""
    return norm if np.isinf(TAILS[j]) else t(TAILS[j], scale=np.sqrt((TAILS[j] - 2) / TAILS[j]))


def naive_sum(made, i, j, what, y):
    return sum(
        share * what((y - m) / s) / (1.0 if what.__name__ == "cdf" else s)
        for share, m, s in zip(made.shares, made.means[:, i, j], made.deviations[:, i, j], strict=True)
    )


def test_densities_and_probabilities_are_sums_of_those_of_scipy():
    made, y = predictive(), numbers(4, 2, seed=2)
    for i in range(4):
        for j in range(2):
            assert made.cumulative(y)[i, j] == pytest.approx(naive_sum(made, i, j, bell(j).cdf, y[i, j]))
            assert made.log_densities(y)[i, j] == pytest.approx(np.log(naive_sum(made, i, j, bell(j).pdf, y[i, j])))
    joint = sum(
        share * np.prod([bell(j).pdf((y[:, j] - m[:, j]) / s[:, j]) / s[:, j] for j in range(2)], axis=0)
        for share, m, s in zip(made.shares, made.means, made.deviations, strict=True)
    )
    assert_allclose(made.joint_log_densities(y), np.log(joint))


def test_moments_are_integrals_of_the_density():
    made = predictive(n=2)
    for j in range(2):

        def density(y, power, j=j):
            return y**power * naive_sum(made, 0, j, bell(j).pdf, y)

        first, second = (
            sum(quad(density, a, b, args=(p,), limit=200)[0] for a, b in ((-np.inf, 0), (0, np.inf))) for p in (1, 2)
        )
        assert made.mean()[0, j] == pytest.approx(first, abs=1e-5)
        assert made.variance()[0, j] == pytest.approx(second - first**2, rel=1e-3)


@pytest.mark.parametrize("shares", [SHARES, np.ones(1)], ids=["three", "one"])
@pytest.mark.parametrize("q", [1e-6, 0.05, 0.5, 0.9, 1 - 1e-6])
def test_quantiles_are_the_roots_of_the_probability(q, shares):
    made = predictive(shares)
    found = made.quantiles(q)
    for i in range(4):
        for j in range(2):
            root = brentq(lambda y, i=i, j=j: naive_sum(made, i, j, bell(j).cdf, y) - q, -1e4, 1e4, xtol=1e-11)
            assert found[i, j] == pytest.approx(root, rel=1e-6, abs=1e-7)


def test_quantiles_of_components_that_lie_apart_are_found_between_them():
    """Between two narrow bells the density is nearly 0, and Newton's step leads far away."""
    made = Predictive(np.array([0.5, 0.5]), np.array([[[-5.0]], [[5.0]]]), np.full((2, 1, 1), 1e-3), TAILS[:1])
    for q in (0.49, 0.5, 0.51):
        assert made.cumulative(made.quantiles(q))[0, 0] == pytest.approx(q, abs=1e-6)


def test_the_bell_has_variance_one():
    spread = quad(lambda z: z**2 * np.exp(log_bell(np.array([z]), np.array([5.0]))[0]), -np.inf, np.inf)[0]
    assert spread == pytest.approx(1.0, abs=1e-6)
    assert_allclose(bell_quantile(0.9, TAILS), [norm.ppf(0.9), bell(1).ppf(0.9)])


def likeliest_by_scipy(z, weights, tails):
    """The log densities of z under a bell of these tails whose scale scipy has found."""
    made = norm if np.isinf(tails) else t(tails)

    def densities(log_scale):
        return made.logpdf(z / np.exp(log_scale)) - log_scale

    start = 0.5 * np.log(np.average(z**2, weights=weights))
    found = minimize_scalar(lambda log_scale: -weights @ densities(log_scale), bracket=(start - 1.0, start))
    return densities(found.x)


@pytest.mark.parametrize("freedom", [1.0, 5.0, 1e6])
def test_the_likeliest_bell_has_the_scale_and_the_tails_that_scipy_finds(freedom):
    z, weights = 2.0 * np.random.default_rng(3).standard_t(freedom, size=300), np.linspace(0.5, 1.5, 300)
    compared = [likeliest_by_scipy(z, weights, tails) for tails in (np.inf, 30.0, 15.0, 10.0, 7.0, 5.0, 4.0, 3.0)]
    best = int(np.argmax([weights @ densities for densities in compared]))
    assert best in {1.0: [7], 5.0: [4, 5, 6], 1e6: [0, 1]}[freedom]
    assert_allclose(likeliest_log_densities(z, weights), compared[best], atol=2e-3)


def test_the_density_of_numbers_that_are_all_0_is_finite():
    assert np.isfinite(likeliest_log_densities(np.zeros(5), np.ones(5))).all()
