"""Trends on landmarks: what is taken from the targets comes back in every prediction, and only where it pays."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import mercer
from mercer import GPRegressor, RFMClassifier, RFMRegressor
from mercer.kernels import Gaussian, Laplace, Linear, Matern32, ProductLaplace
from mercer.linalg import ridge_leave_one_out
from mercer.tabular_models import finish, learned, learning, many_rows, race, trend
from mercer.tabular_models.fitters import LeftOut, RidgeFitter
from mercer.tabular_models.landmark_ridge import landmark_sums
from mercer.tabular_models.landmark_table import Landmarks, landmark_machine
from mercer.tabular_models.plans import Plan
from mercer.tabular_models.settings import Setting
from mercer.tabular_models.tuning import Iterate
from tests.examples_of import numbers
from tests.tabular_models.test_race import search
from tests.tabular_models.test_table import smooth_rows, table_of


@pytest.fixture
def very_many_rows(monkeypatch):
    """Bounds so small that a thousand rows are very many, and a leaf has few beside its noise."""
    monkeypatch.setattr(learning, "MOST_EXACT_ROWS", 300)
    monkeypatch.setattr(learning, "FEWEST_TREND_ROWS", 500)
    for module in (learned, learning):
        monkeypatch.setattr(module, "MANY_ROWS", 300)
    for module in (many_rows, trend):
        monkeypatch.setattr(module, "LEAF_ROWS", 70)
    for module in (finish, learned, race):
        monkeypatch.setattr(module, "SCREEN_ROWS", 150)
    for module in (finish, learned):
        monkeypatch.setattr(module, "METRIC_ROWS", 200)
    monkeypatch.setattr(learned, "JUDGE_ROWS", 200)
    monkeypatch.setattr(learning, "MOST_TRENDS", 1)
    monkeypatch.setattr(trend, "ROWS_A_LANDMARK", 20)


@pytest.fixture
def with_leaves(very_many_rows, monkeypatch):
    """Leaves follow the trend even where they have little to add."""
    monkeypatch.setattr(many_rows, "beats_its_trend", lambda fitter, left_out: True)


def noisy_rows(n=1000):
    X = numbers(n, 3)
    return X, X[:, 0] + 0.5 * X[:, 1] ** 2 + 1.5 * numbers(n, 1, seed=1)[:, 0]


def test_what_is_taken_from_the_targets_is_remembered():
    table = table_of(*smooth_rows(30))
    values = torch.from_numpy(numbers(30, 1))
    rest = table.without(values).without(values)
    assert_allclose(rest.y + 2 * values, table.y)
    assert_allclose(rest.trend, 2 * values)
    assert_allclose(rest.take(np.array([3, 5])).trend, 2 * values[[3, 5]])
    assert not table.trend.any()
    assert rest.columns("rank") is table.columns("rank")


def test_left_out_predictions_are_of_the_targets_with_their_trend():
    table = table_of(*smooth_rows(30))
    values = torch.from_numpy(numbers(30, 1))
    rest, K = table.without(values), Gaussian(1.0).matrix(table.warped("none"))
    solution = ridge_leave_one_out(K, rest.y, 0.1)
    left_out = LeftOut.from_solution(solution, rest)
    assert_allclose(left_out.y, table.y)
    assert_allclose(left_out.mean, values + rest.y - solution.residuals)
    assert_allclose(left_out.trend, values)


def test_an_average_that_sees_little_is_drawn_toward_the_trend():
    y, below, ones = numbers(400, 1), numbers(400, 1, seed=1), np.ones(400)
    noise = 0.5 * numbers(400, 1, seed=2)
    # The machine predicts twice what there is above the trend: half of it is right.
    left_out = LeftOut(y + below + noise, 2.0 * y + below, ones, ones, below)
    assert_allclose(RidgeFitter().shares([left_out]), [0.5], atol=0.03)


def test_degrees_of_freedom_are_the_trace_of_the_hat_matrix():
    X, Z, kernel = torch.from_numpy(numbers(40, 3)), torch.from_numpy(numbers(7, 3, seed=1)), Gaussian(1.5)
    sums = landmark_sums(kernel, X, Z, torch.from_numpy(numbers(40, 1)))
    K = kernel.matrix(X, Z)
    hat = K @ torch.linalg.solve(K.T @ K + 0.3 * kernel.matrix(Z), K.T)
    assert sums.degrees_of_freedom(0.3) == pytest.approx(float(hat.trace()))


def test_residuals_of_a_trend_are_those_of_generalized_cross_validation():
    table = table_of(*smooth_rows(60))
    fit = landmark_machine(
        Iterate(Gaussian(1.0), 0.1), "none", table, Landmarks(10, "uniform", 0, 64.0), RidgeFitter(), 0.1
    )
    apart = table.y.numpy() - fit.machine.mean(table.X)
    residuals = table.y - trend.trend_values(fit, table)
    assert_allclose(residuals, apart / (1.0 - fit.degrees_of_freedom / 60))
    assert 1.0 < fit.degrees_of_freedom < 10.0


def test_a_trend_is_taken_out_only_where_leaves_are_predicted_better(very_many_rows):
    """Noise that a leaf cannot average out wants a trend; a rough function without noise has none."""
    X, y = noisy_rows()
    rough = np.sign(np.sin(9.0 * X[:, 0])) * np.sign(np.sin(9.0 * X[:, 1]))
    fresh, random = np.ones(len(X), dtype=bool), np.random.RandomState
    for targets, bandwidth, wanted in ((y, 3.0, True), (rough, 0.1, False)):
        table = table_of(X, targets)
        plan = Plan(Setting(Gaussian(), "none"), [Iterate(Gaussian(bandwidth), 0.1)])
        starts = [trend.Start("none", plan.iterates[0], 0)]
        found = [trend.trend_of(search(), plan, starts, table, fresh, random(seed)) is not None for seed in range(4)]
        assert sum(found) >= 3 if wanted else sum(found) == 0


@pytest.mark.parametrize("model", [RFMRegressor, GPRegressor])
def test_predictions_reasons_and_files_hold_the_trend(with_leaves, model, tmp_path):
    X, y = noisy_rows()
    fitted = model("gaussian", "identity", warp="none", random_state=0).fit(X, y)
    assert len(fitted.trend_) == 1
    rows = numbers(9, 3, seed=5)
    parts = fitted.trend_[0].mean(rows) + sum(m.share * m.mean(rows) for m in fitted.machines_)
    assert_allclose(fitted.predict(rows), y.mean() + parts[:, 0], atol=1e-6)
    assert_allclose(fitted.contributions(rows).sum(axis=1) + y.mean(), fitted.predict(rows), atol=1e-5)
    step = 1e-5 * np.eye(3)
    slopes = [(fitted.predict(rows + e) - fitted.predict(rows - e)) / 2e-5 for e in step]
    assert_allclose(fitted.gradients(rows), np.transpose(slopes), atol=1e-3)
    mercer.save(fitted, tmp_path / "model")
    assert_allclose(mercer.load(tmp_path / "model").predict(rows), fitted.predict(rows))
    alone = model("gaussian", "identity", warp="none", random_state=0)
    alone._follows_trends = False
    truth = X[:, 0] + 0.5 * X[:, 1] ** 2
    error, other = (np.mean((m.predict(X) - truth) ** 2) for m in (fitted, alone.fit(X, y)))
    assert error < other


def test_a_process_with_a_trend_is_as_wide_as_the_noise(with_leaves):
    X, y = noisy_rows()
    fitted = GPRegressor("gaussian", "identity", warp="none", random_state=0).fit(X, y)
    fresh = numbers(2000, 3, seed=8)
    targets = fresh[:, 0] + 0.5 * fresh[:, 1] ** 2 + 1.5 * numbers(2000, 1, seed=9)[:, 0]
    low, high = fitted.predict_interval(fresh).T
    assert 0.86 < np.mean((low <= targets) & (targets <= high)) < 0.94
    assert_allclose(fitted.sample_y(fresh[:5], 4000).mean(axis=1), fitted.predict(fresh[:5]), atol=0.15)


def test_classes_are_calibrated_with_the_trend(with_leaves):
    X, y = noisy_rows()
    fitted = RFMClassifier("gaussian", "identity", warp="none", random_state=0).fit(X, y > 0)
    assert len(fitted.trend_) == 1
    fresh = numbers(2000, 3, seed=8)
    truth = fresh[:, 0] + 0.5 * fresh[:, 1] ** 2 + 1.5 * numbers(2000, 1, seed=9)[:, 0] > 0
    assert np.mean(fitted.predict(fresh) == truth) > 0.7
    probability = fitted.predict_proba(fresh)[:, 1]
    assert abs(probability.mean() - truth.mean()) < 0.05
    assert abs(np.mean(probability[truth]) - np.mean(probability[~truth])) > 0.1


def test_where_leaves_have_nothing_to_add_the_last_trend_is_the_machine(very_many_rows):
    X, y = noisy_rows()
    fitted = GPRegressor("gaussian", "identity", warp="none", random_state=0).fit(X, y)
    assert fitted.trend_ == []
    (machine,) = fitted.machines_
    assert len(machine.rows) == 50
    _, std = fitted.predict(X, return_std=True)
    assert_allclose(std, 1.5, rtol=0.15)


def test_the_recursion_on_landmarks_brings_back_columns_that_few_rows_have_given_up():
    """An interaction that is weak beside the noise: few rows see nothing of it, all rows together do."""
    X = numbers(8000, 6)
    y = np.sign(X[:, 0] * X[:, 1]) * 0.5 + numbers(8000, 1, seed=1)[:, 0]
    table = table_of(X, y)
    identity = Iterate(Gaussian(3.0), 10.0)
    few = Landmarks(150, "uniform", 0, 64.0)
    steps = list(trend.recursion(search(), trend.Start("none", identity, 3), table, few, None))
    assert steps[-1][0] > steps[0][0]
    weights = steps[-1][1].machine.kernel.common_metric().importances(6)
    assert weights[:2].min() > 5.0 * weights[2:].max()
    given_up = Iterate(Gaussian(1.0, metric=mercer.Mahalanobis([0.0, 0.0, 1.0, 1.0, 1.0, 1.0])), 10.0)
    starts = [trend.Start("none", given_up, 0), trend.Start("none", identity, 3)]
    found = trend.on_landmarks(search(), starts, table, np.random.RandomState(0))
    assert found.machine.kernel.common_metric().importances(6)[:2].min() > 0.2


def test_trends_begin_with_the_judged_plan_and_with_radial_kernels_under_the_identity():
    table = table_of(*smooth_rows(60))
    kernels = [Gaussian(1.0), Laplace(1.0), ProductLaplace(1.0), Linear(), Gaussian(1.0)]
    plans = [Plan(Setting(kernel, "none"), [Iterate(kernel, 0.1)]) for kernel in kernels]
    plans.append(Plan(Setting(Matern32(1.0), "none", "ard", 1), 2 * [Iterate(Matern32(1.0), 0.1)]))
    starts = trend.starts_of(search(), plans[-1], plans, table)
    assert [type(start.iterate.kernel) for start in starts] == [Matern32, Gaussian, Laplace]
    assert [start.steps for start in starts] == [0, 3, 3]


def test_where_all_rows_see_nothing_there_is_no_trend(very_many_rows):
    X, noise = numbers(1000, 3), numbers(1000, 1, seed=1)[:, 0]
    starts = [trend.Start("none", Iterate(Gaussian(1.0), 0.1), 1)]
    found = [trend.on_landmarks(search(), starts, table_of(X, noise), np.random.RandomState(seed)) for seed in range(3)]
    assert found == [None] * 3
    assert trend.on_landmarks(search(), starts, table_of(X, noise + X[:, 0]), np.random.RandomState(0)) is not None
