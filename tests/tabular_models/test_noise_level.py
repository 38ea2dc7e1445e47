"""Noise that depends on x: leave-one-out levels by refits, found where it is and not found where it is not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mercer
from mercer import ColumnWarp, GPRegressor
from mercer.kernels import Gaussian
from mercer.tabular_models import noise_level
from mercer.tabular_models.fitters import is_clearly_better
from mercer.tabular_models.machine import Machine
from mercer.tabular_models.noise_level import LEVELS, RIDGES, NoiseLevel, find_noise_level, kernels_tried
from mercer.tabular_models.predictive import Predictive
from mercer.tabular_models.spread import fit_spread
from tests.examples_of import numbers

OPTIONS = {"kernel": "matern32", "metric": "ard", "warp": "none", "random_state": 0}


def made(kind, seed, n=200):
    """A table whose noise is the same everywhere ("equal", "heavy"), or grows with a column or with the mean."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    f, e = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1], random.normal(size=n)
    if kind == "heavy":
        e = 0.7 * random.standard_t(3, size=n)
    elif kind == "mean":
        f = np.exp(f)
        e = 0.7 * f * e
    elif kind in ("column", "unused"):
        e = np.exp(0.7 * X[:, 0 if kind == "column" else 3]) * e
    return X, f + 0.4 * e


def errors(n=60):
    """Left-out rows of a machine that predicts 0 with deviation 1, whose errors grow with the first column."""
    X = numbers(n, 2)
    columns = ColumnWarp("none").fit(X)
    machine = Machine(Gaussian(1.2), columns, X, np.zeros((n, 1)), 0.1, 1.0, np.ones(1))
    raw = Predictive(np.ones(1), 0.1 * numbers(1, n, 1, seed=2), np.ones((1, n, 1)), np.array([np.inf]))
    return machine, X, raw, np.exp(X[:, :1]) * numbers(n, 1, seed=3)


def naive_choice(machine, X, raw, y, spread):
    """The best level by refits without each row, one after the other."""
    common = spread.corrected(raw)
    sizes = np.abs(y - common.mean())[:, 0] / np.sqrt(common.variance()[:, 0])
    relative, n, found = sizes / sizes.mean() - 1.0, len(X), []
    for kernel, columns, inputs in kernels_tried(machine, X, raw.mean()[:, 0]):
        for ridge in RIDGES:
            K, left_out = kernel.matrix(inputs), np.empty(n)
            for i in range(n):
                others = np.arange(n) != i
                A = K[np.ix_(others, others)] + ridge * np.eye(n - 1)
                left_out[i] = np.clip(1.0 + K[i, others] @ np.linalg.solve(A, relative[others]), *LEVELS)
            score = -np.sum(np.log(left_out) + (1.0 + relative) / left_out)
            alpha = np.linalg.solve(K + ridge * np.eye(n), relative)
            found.append((score, left_out, columns, kernel, inputs, alpha))
    return max(found, key=lambda entry: entry[0])


def test_levels_are_those_of_refits_without_each_row():
    machine, X, raw, y = errors()
    spread = fit_spread(raw, y, np.ones(60), 5)
    found = find_noise_level(machine, X, raw, y, np.ones(60), spread, 5)
    _, left_out, columns, kernel, inputs, alpha = naive_choice(machine, X, raw, y, spread)
    assert found is not None
    assert_allclose(found.level.alpha, alpha, atol=1e-8)
    assert found.level.kernel == kernel
    scaled = raw._replace(deviations=raw.deviations * left_out[:, None])
    own = fit_spread(scaled, y, np.ones(60), 5)
    densities = own.corrected(scaled).log_densities(y)[:, 0]
    assert found.score == pytest.approx(densities.mean())
    assert_allclose(found.spread.scale, own.scale)
    assert is_clearly_better(densities, spread.corrected(raw).log_densities(y)[:, 0], np.ones(60), errors=2.0)
    # and the level at new rows is the regression written out
    at = numbers(5, 2, seed=9)
    u = numbers(5, seed=4)[:, None] if columns is None else columns.transform(at)
    expected = np.clip(1.0 + kernel.matrix(u, inputs) @ alpha, *LEVELS)
    assert_allclose(found.level.at(at, numbers(5, seed=4)), expected, atol=1e-8)


def test_a_level_is_kept_within_its_bounds():
    level = NoiseLevel(Gaussian(1.0), None, np.array([[0.0], [5.0]]), np.array([-3.0, 30.0]))
    assert_allclose(level.at(np.zeros((3, 2)), np.array([0.0, 5.0, 99.0])), [LEVELS[0], LEVELS[1], 1.0])


def test_few_rows_say_nothing_and_many_are_thinned(monkeypatch):
    machine, X, raw, y = errors()
    spread = fit_spread(raw, y, np.ones(60), 5)
    monkeypatch.setattr(noise_level, "FEWEST_ROWS", 61)
    assert find_noise_level(machine, X, raw, y, np.ones(60), spread, 5) is None
    monkeypatch.setattr(noise_level, "FEWEST_ROWS", 10)
    monkeypatch.setattr(noise_level, "MOST_ROWS", 50)
    assert len(find_noise_level(machine, X, raw, y, np.ones(60), spread, 5).level.alpha) == 50


def test_several_targets_have_their_own_levels_and_models_keep_them(tmp_path):
    X, y = made("column", 0)
    _, equal = made("equal", 0)
    model = GPRegressor(**OPTIONS).fit(X, np.column_stack([equal, y]))
    assert [level is None for level in model.noise_levels_] == [True, False]
    mercer.save(model, tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    assert_allclose(again.predict_interval(X[:9]), model.predict_interval(X[:9]))
    assert_allclose(again.support(X[:9]), model.support(X[:9]))
    low, high = (X[np.argsort(X[:, 0])[part]] for part in (slice(20), slice(-20, None)))
    ratio = model.predict(high, return_std=True)[1].mean(axis=0) / model.predict(low, return_std=True)[1].mean(axis=0)
    assert ratio[0] < 2 < 3 < ratio[1]
    mean, covariance = model.predict(X[:6], return_cov=True)
    std = model.predict(X[:6], return_std=True)[1]
    assert_allclose(np.einsum("iic->ic", covariance), std**2)
    drawn = model.sample_y(X[:6], 20_000)
    assert_allclose(drawn.mean(axis=2), mean, atol=0.1 * std.max())
    inside = (drawn > model.predict_interval(X[:6])[:, :, :1]) & (drawn < model.predict_interval(X[:6])[:, :, 1:])
    assert_allclose(inside.mean(axis=2), 0.9, atol=0.01)


def test_intervals_follow_the_noise():
    X, y = made("unused", 1, n=1400)
    model = GPRegressor(**OPTIONS).fit(X[:400], y[:400])
    lower, upper = model.predict_interval(X[400:]).T
    inside = (lower < y[400:]) & (y[400:] < upper)
    for third in np.array_split(np.argsort(X[400:, 3]), 3):
        assert inside[third].mean() == pytest.approx(0.9, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "is_there"), [("equal", False), ("heavy", False), ("column", True), ("unused", True), ("mean", True)]
)
def test_it_is_found_where_it_is_and_only_there(kind, is_there):
    found = [GPRegressor(**OPTIONS).fit(*made(kind, seed)).noise_levels_[0] is not None for seed in range(20)]
    assert np.mean(np.equal(found, is_there)) >= 0.9
