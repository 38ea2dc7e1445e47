"""Warped targets: slopes against autograd, moments against samples, found where it helps, and never negative."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import norm, yeojohnson

import mercer
from mercer import GPRegressor
from mercer.kernels import Matern32
from mercer.tabular_models.predictive import Predictive
from mercer.tabular_models.spread import fit_spread
from mercer.tabular_models.target_warp import EXPONENTS, TargetWarp, log_warp, moments_of, power_warps
from mercer.tabular_models.target_warp_choice import RIDGES, chosen_warps, judged
from tests import naive
from tests.examples_of import numbers

OPTIONS = {"kernel": "matern32", "metric": "identity", "warp": "none", "random_state": 0}
POWERS = [TargetWarp("yeo-johnson", 0.7, 2.0, exponent) for exponent in EXPONENTS]
WARPS = [TargetWarp(), TargetWarp("log", 0.5, smallest=0.0), *POWERS]


@pytest.mark.parametrize("warp", WARPS, ids=str)
def test_the_inverse_undoes_the_warp_and_slopes_are_those_of_differences(warp):
    y = np.abs(3.0 * numbers(20)) if warp.name == "log" else 3.0 * numbers(20)
    assert_allclose(warp.inverse(warp.forward(y)), y, atol=1e-9)
    slopes = (warp.forward(y + 1e-6) - warp.forward(y - 1e-6)) / 2e-6
    assert_allclose(warp.log_slope(y), np.log(slopes), atol=1e-5)


@pytest.mark.parametrize("warp", POWERS, ids=str)
def test_powers_are_those_of_scipy_and_their_slopes_those_of_autograd(warp):
    y = 3.0 * numbers(20)
    assert_allclose(warp.forward(y), yeojohnson((y - 0.7) / 2.0, warp.exponent))
    for value in y:
        t = torch.tensor(value, dtype=torch.float64, requires_grad=True)
        u, a = (t - 0.7) / 2.0, warp.exponent if value >= 0.7 else 2.0 - warp.exponent
        size = torch.log1p(u.abs()) if a == 0 else ((1 + u.abs()) ** a - 1) / a
        (torch.sign(u) * size).backward()
        assert warp.log_slope(np.array([value]))[0] == pytest.approx(np.log(t.grad.item()))


def test_a_logarithm_suits_targets_that_are_not_negative():
    assert log_warp(np.array([1.0, 4.0])) == TargetWarp("log", 0.0, smallest=0.0)
    assert log_warp(np.array([0.0, 4.0, 3.0])) == TargetWarp("log", 1.5, smallest=0.0)
    assert log_warp(np.array([-1.0, 4.0])) is None
    assert log_warp(np.zeros(3)) is None
    assert power_warps(np.ones(4)) == []
    warp = log_warp(np.array([0.0, 4.0, 3.0]))
    assert warp.inverse(np.array([-50.0]))[0] == 0.0
    assert warp.forward(np.array([-2.0]))[0] == -np.inf


def test_moments_are_those_of_the_warped_distribution():
    shares, means, deviations = np.array([0.7, 0.3]), 0.5 * numbers(2, 3, 2), np.exp(numbers(2, 3, 2, seed=1)) / 6
    predictive = Predictive(shares, means, deviations, np.array([np.inf, np.inf]))
    mean, std = moments_of(predictive, [TargetWarp("log", 0.0, smallest=0.0), TargetWarp()])
    first = np.tensordot(shares, np.exp(means + deviations**2 / 2), axes=1)[:, 0]
    second = np.tensordot(shares, np.exp(2 * means + 2 * deviations**2), axes=1)[:, 0]
    assert_allclose(mean[:, 0], first, rtol=2e-3)
    assert_allclose(std[:, 0], np.sqrt(second - first**2), rtol=3e-2)
    assert_allclose(mean[:, 1], predictive.mean()[:, 1])
    assert_allclose(std[:, 1], np.sqrt(predictive.variance()[:, 1]))


def test_left_out_densities_are_those_of_refits():
    Z, y = numbers(45, 2), np.exp(0.4 * numbers(45, seed=1))
    warp = TargetWarp("log", 0.0, smallest=0.0)
    (trial,) = judged(Z, y, np.ones(45), [warp])
    K, t = Matern32("median").resolved(Z, 0).matrix(Z), np.log(y)
    found = []
    for ridge in RIDGES:
        misses, variances = naive.ridge_leave_one_out(K, t - t.mean(), ridge, np.ones(45))
        scaled = np.mean(misses**2 / variances) * variances
        found.append((norm.logpdf(misses, 0, np.sqrt(scaled)).mean(), misses, np.sqrt(scaled)))
    _, misses, deviations = max(found, key=lambda entry: entry[0])
    raw = Predictive(np.ones(1), (t - misses)[None, :, None], deviations[None, :, None], np.array([np.inf]))
    corrected = fit_spread(raw, t[:, None], np.ones(45), 0).corrected(raw)
    assert_allclose(trial.densities, corrected.log_densities(t[:, None])[:, 0] - np.log(y), atol=1e-6)
    assert_allclose(trial.squares, (y - moments_of(corrected, [warp])[0][:, 0]) ** 2, rtol=1e-4, atol=1e-8)


def made(kind, seed, n=300):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    f, e = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1], random.normal(size=n)
    if kind == "logarithmic":
        return X, np.exp(2.0 * f + 0.5 * e)
    if kind == "counts":
        return X, random.poisson(np.exp(1.0 + f)).astype(float)
    return X, 10.0 + f + (0.3 * random.standard_t(3, size=n) if kind == "heavy" else 0.4 * e)


@pytest.mark.parametrize(("kind", "is_there"), [("plain", False), ("heavy", False), ("logarithmic", True)])
def test_a_warp_is_found_where_it_helps_and_only_there(kind, is_there):
    found = []
    for seed in range(20):
        X, y = made(kind, seed)
        (warp,) = chosen_warps("auto", X, y[:, None], np.ones(len(y)), np.random.RandomState(0))
        found.append(warp.name != "none")
    assert np.mean(np.equal(found, is_there)) >= 0.9


def test_too_few_rows_with_a_weight_choose_nothing():
    X, y = made("logarithmic", 0)
    w = (np.arange(300) < 30).astype(float)
    assert chosen_warps("auto", X, y[:, None], w, np.random.RandomState(0)) == [TargetWarp()]
    (named,) = chosen_warps("yeo-johnson", X, y[:, None], w, np.random.RandomState(0))
    assert named.exponent == 0.0
    with pytest.raises(ValueError, match="target_warp='log' .*below 0"):
        chosen_warps("log", X, -y[:, None], w, np.random.RandomState(0))


def test_everything_is_asked_in_units_of_the_target(tmp_path):
    X, y = made("logarithmic", 0, n=120)
    model = GPRegressor(**OPTIONS, target_warp="log").fit(X, y)
    bent = GPRegressor(**OPTIONS).fit(X, np.log(y))
    at = numbers(5, 4, seed=5)
    assert_allclose(model.predict_quantiles(at, [0.1, 0.5]), np.exp(bent.predict_quantiles(at, [0.1, 0.5])))
    assert_allclose(model.log_density(at, y[:5]), bent.log_density(at, np.log(y[:5])) - np.log(y[:5]))
    assert model.log_density(at[:1], [-1.0])[0] == -np.inf
    assert_allclose(model.sample_y(at, 4), np.exp(bent.sample_y(at, 4)))
    assert model.loo_log_density_ == pytest.approx(bent.loo_log_density_ - np.log(y).mean())
    mean, std = model.predict(at, return_std=True)
    assert_allclose(model.predict(at), mean)
    assert_allclose(np.sqrt(model.predict(at, return_cov=True)[1].diagonal()), std)
    assert (model.latent_std(at) < std).all()
    assert (mean > model.predict_quantiles(at, 0.5)).all()
    mercer.save(model, tmp_path / "model.mercer")
    assert_allclose(mercer.load(tmp_path / "model.mercer").predict(at), mean)


def test_counts_are_predicted_with_nothing_below_zero():
    X, y = made("counts", 0)
    model = GPRegressor(**OPTIONS, target_warp="log").fit(X[:150], y[:150])
    assert (y[:150] == 0).any()
    assert model.predict(X).min() >= 0.0
    lower, upper = model.predict_interval(X[150:]).T
    assert lower.min() >= 0.0
    assert np.mean((lower <= y[150:]) & (y[150:] <= upper)) > 0.8


def test_predictions_are_nearer_where_the_warp_is_right():
    X, y = made("logarithmic", 3, n=600)
    plain, bent = (GPRegressor(**OPTIONS, target_warp=warp).fit(X[:300], y[:300]) for warp in ("none", "auto"))
    assert bent.target_warps_[0].name != "none"
    densities = [model.log_density(X[300:], y[300:]).mean() for model in (plain, bent)]
    errors = [np.mean((model.predict(X[300:]) - y[300:]) ** 2) for model in (plain, bent)]
    assert densities[1] > densities[0] + 0.1
    assert errors[1] < 1.05 * errors[0]
