"""How machines are judged: costs against refits and densities, left-out predictions, shares, and clear gains."""

import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

from mercer.kernels import Gaussian, Laplace
from mercer.linalg import ridge_leave_one_out
from mercer.selection import stacking_weights
from mercer.tabular_models.fitters import (
    SMALLEST_SHARE,
    LeftOut,
    ProcessFitter,
    RidgeFitter,
    is_clearly_better,
    without_small_shares,
)
from tests import naive
from tests.examples_of import numbers
from tests.tabular_models.test_table import repeated_rows, table_of

RIDGE = 0.2
kernels = pytest.mark.parametrize("kernel", [Gaussian(0.8), Laplace(1.2)])
gammas = pytest.mark.parametrize("gamma", [0.0, 0.4])


def left_out(n=40, outputs=2, seed=0):
    """Predictions that are off by about their standard deviations."""
    mean, variance = numbers(n, outputs, seed=seed), np.linspace(0.5, 2.0, n)
    y = mean + np.sqrt(variance)[:, None] * numbers(n, outputs, seed=seed + 1) * [1.0, 3.0][:outputs]
    return LeftOut(y, mean, variance, np.linspace(0.2, 3.0, n), np.zeros_like(y))


# ---- left-out predictions ----------------------------------------------------------------------------------


@gammas
@kernels
def test_left_out_predictions_are_those_of_refits_without_the_row(kernel, gamma):
    table = table_of(*repeated_rows(), shared_noise=gamma)
    K = kernel.matrix(table.X)
    misses, variances = naive.ridge_leave_one_out(K, table.y.numpy(), RIDGE, table.weights.numpy())
    solution = ridge_leave_one_out(torch.from_numpy(K), table.y, RIDGE, table.weights)
    found = LeftOut.from_solution(solution, table)
    assert_array_equal(found.y, table.y)
    assert_allclose(found.y - found.mean, misses, atol=1e-10)
    assert_allclose(found.unit_variance, variances, rtol=1e-10)
    assert_array_equal(found.weights, table.mass)


def test_parts_are_joined_and_taken_apart():
    whole = left_out()
    joined = LeftOut.joined([whole.rows(np.arange(10)), whole.rows(np.arange(10, 40))])
    for a, b in zip(joined, whole, strict=True):
        assert_array_equal(a, b)
    some = whole.rows(np.array([3, 1]))
    assert [len(part) for part in some] == [2, 2, 2, 2, 2]
    assert_array_equal(some.unit_variance, whole.unit_variance[[3, 1]])
    assert_array_equal(some.rows(np.array([True, False])).y, whole.y[[3]])


@pytest.mark.parametrize("factor", [1.0, 0.9, 1.1])
def test_the_scales_are_those_under_which_left_out_rows_are_likeliest(factor):
    given = left_out()
    scales = given.density_scales()
    assert_allclose(
        scales, np.average((given.y - given.mean) ** 2 / given.unit_variance[:, None], axis=0, weights=given.weights)
    )
    other = norm.logpdf(given.y, given.mean, np.sqrt(factor * scales * given.unit_variance[:, None])).mean(axis=1)
    best = given.weights @ given.log_densities()
    assert (given.weights @ other == pytest.approx(best)) if factor == 1.0 else (given.weights @ other < best - 0.01)


def test_targets_that_are_met_have_a_finite_density():
    given = left_out()
    assert np.isfinite(given._replace(y=given.mean).log_densities()).all()


# ---- costs -------------------------------------------------------------------------------------------------


@gammas
@kernels
def test_the_cost_of_errors_is_half_the_log_of_its_squared_error_left_out(kernel, gamma):
    for table in (table_of(*repeated_rows(), shared_noise=gamma), table_of(numbers(12, 2), numbers(12, 2, seed=1))):
        K, w = kernel.matrix(table.X), table.mass.numpy()
        misses, _ = naive.ridge_leave_one_out(K, table.y.numpy(), RIDGE, w)
        expected = 0.5 * math.log(np.average((misses**2).mean(axis=1), weights=w))
        assert RidgeFitter().cost(torch.from_numpy(K), table, RIDGE) == pytest.approx(expected)
        assert ProcessFitter().cost(torch.from_numpy(K), table, RIDGE) == pytest.approx(expected)


@gammas
@kernels
def test_the_cost_by_evidence_is_minus_the_log_evidence(kernel, gamma):
    X, Y, w = repeated_rows()
    table = table_of(X + np.arange(24)[:, None], Y, w, shared_noise=gamma)  # No two rows are equal.
    assert table.repeats is None
    K, y = kernel.matrix(table.X), table.y.numpy()
    A = K + np.diag(RIDGE / table.weights.numpy())
    scales = (y * np.linalg.solve(A, y)).sum(axis=0) / len(y)
    densities = [multivariate_normal.logpdf(column, cov=s * A) for column, s in zip(y.T, scales, strict=True)]
    assert ProcessFitter(by_evidence=True).cost(torch.from_numpy(K), table, RIDGE) == pytest.approx(
        -np.mean(densities) / len(y)
    )


def test_repeats_reach_the_cost_of_a_process():
    table = table_of(*repeated_rows())
    K = Gaussian(0.8).matrix(table.warped("none"))
    costs = [ProcessFitter(by_evidence=True).cost(K, table, ridge) for ridge in (0.01, 0.2)]
    further, scatter = table.repeats
    more = table_of(*repeated_rows())
    more.repeats = table.repeats._replace(scatter=3 * scatter)
    dearer = [ProcessFitter(by_evidence=True).cost(K, more, ridge) for ridge in (0.01, 0.2)]
    assert further > 5
    # More scatter makes a small noise less likely than a large one.
    assert dearer[0] - dearer[1] > costs[0] - costs[1] + 0.05


@pytest.mark.parametrize("fitter", [RidgeFitter(), ProcessFitter(), ProcessFitter(by_evidence=True)])
def test_what_cannot_be_used_costs_infinitely_much_or_is_refused(fitter):
    table = table_of(numbers(6, 2), np.zeros(6))
    assert math.isfinite(fitter.cost(Gaussian(1.0).matrix(table.warped("none")), table, 0.1))
    table = table_of(numbers(6, 2), np.full(6, 1e200) * numbers(6))
    assert fitter.cost(Gaussian(1.0).matrix(table.warped("none")), table, 0.1) == math.inf


def test_the_noise_floor_is_the_smallest_ridge_of_a_process():
    assert ProcessFitter(0.01, by_evidence=True).smallest_ridge == 0.01
    assert ProcessFitter(by_evidence=True).needs_variances
    assert not RidgeFitter().needs_variances


# ---- scores and shares -------------------------------------------------------------------------------------


def test_rows_are_scored_by_squared_errors_or_by_densities():
    given = left_out()
    assert_allclose(
        RidgeFitter().row_scores(given), [-np.mean((y - m) ** 2) for y, m in zip(given.y, given.mean, strict=True)]
    )
    expected = norm.logpdf(given.y, given.mean, np.sqrt(given.density_scales() * given.unit_variance[:, None]))
    assert_allclose(ProcessFitter(by_evidence=True).row_scores(given), expected.mean(axis=1))


def simplex(loss, k):
    """The shares of the smallest loss among those that sum to 1, by scipy."""
    rule = {"type": "eq", "fun": lambda p: p.sum() - 1}
    return minimize(loss, np.full(k, 1 / k), bounds=[(0, 1)] * k, constraints=rule, tol=1e-12).x


def trials_of(y, errors, weights):
    """Several predictions of the same rows."""
    variance = np.linspace(0.5, 2.0, len(y))
    return [LeftOut(y, y + error, variance, weights, np.zeros_like(y)) for error in errors]


@pytest.mark.parametrize("outputs", [1, 2])
def test_shares_of_machines_have_the_smallest_squared_error_with_the_mean_among_them(outputs):
    y, w = numbers(50, outputs), np.linspace(0.2, 3.0, 50)
    errors = [
        0.5 * numbers(50, outputs, seed=1),
        0.6 * numbers(50, outputs, seed=2),
        0.8 * numbers(50, outputs, seed=3),
    ]
    trials = trials_of(y, errors, w)

    def loss(p):
        average = sum(share * trial.mean for share, trial in zip(p, trials, strict=False))
        return w @ ((y - average) ** 2).sum(axis=1)

    expected = simplex(loss, 4)[:-1]
    assert 0 < expected.sum() < 0.95  # The mean of the targets, which is 0, has a share.
    assert_allclose(RidgeFitter().shares(trials), expected, atol=1e-4)


def test_shares_of_processes_are_those_under_which_left_out_rows_are_likeliest():
    y, w = numbers(60, 2), np.linspace(0.2, 3.0, 60)
    half = np.arange(60)[:, None] < 30
    errors = [np.where(half, 0.2, 1.0) * numbers(60, 2, seed=1), np.where(half, 1.0, 0.2) * numbers(60, 2, seed=2)]
    trials = trials_of(y, errors, w)
    densities = np.exp(np.stack([trial.log_densities_with_tails() for trial in trials], axis=1))
    found = ProcessFitter(by_evidence=True).shares(trials)
    assert found.sum() == pytest.approx(1.0)
    assert_allclose(found, simplex(lambda p: -np.average(np.log(densities @ p), weights=w), 2), atol=0.01)
    assert 0.1 < found[0] < 0.9


def test_a_few_rows_far_out_do_not_settle_the_shares():
    """The second machine is twice as far off everywhere but at two rows, where it happens to be nearer."""
    y = numbers(60, 1)
    near, far = 0.3 * numbers(60, 1, seed=1), 0.6 * numbers(60, 1, seed=2)
    near[:2], far[:2] = 9.0, 6.0
    assert ProcessFitter().shares(trials_of(y, [near, far], np.ones(60)))[0] > 0.8


def test_densities_with_tails_are_those_of_gaussians_where_there_are_none():
    y = numbers(40, 2)
    (given,) = trials_of(y, [np.sign(numbers(40, 2, seed=1))], np.linspace(0.5, 2.0, 40))
    given = given._replace(unit_variance=np.ones(40))
    assert_allclose(given.log_densities_with_tails(), given.log_densities())


@pytest.mark.parametrize("fitter", [RidgeFitter(), ProcessFitter(), ProcessFitter(by_evidence=True)])
def test_a_machine_that_is_far_from_the_truth_has_no_share(fitter):
    y = numbers(50, 1)
    shares = fitter.shares(trials_of(y, [0.1 * numbers(50, 1, seed=1), 9.0 * numbers(50, 1, seed=2)], np.ones(50)))
    assert shares[1] == 0.0
    assert shares[0] > 0.9


def test_where_machines_see_nothing_the_mean_has_most_of_the_average():
    """The targets are noise: a machine that follows them is drawn toward their mean, and the best one is kept."""
    y = numbers(400, 1)
    shares = RidgeFitter().shares(
        trials_of(y, [-y + numbers(400, 1, seed=1), -y + numbers(400, 1, seed=2)], np.ones(400))
    )
    assert shares.sum() < 0.15
    assert (shares >= 0).all()


def test_small_shares_are_given_to_the_others():
    small = 0.5 * SMALLEST_SHARE
    assert_allclose(
        without_small_shares(np.array([0.6, 0.4 - small, small])), np.array([0.6, 0.4 - small, 0]) / (1 - small)
    )
    # A sum below 1 stays, the largest share stays however small it is, and one machine is kept where none has any.
    assert without_small_shares(np.array([0.3, small])).sum() == pytest.approx(0.3 + small)
    assert_allclose(without_small_shares(np.array([small, small / 2])), [1.5 * small, 0.0])
    assert_array_equal(without_small_shares(np.zeros(3)), [1.0, 0.0, 0.0])


def test_better_means_by_more_than_the_standard_error():
    w, noise, others = np.linspace(0.5, 2.0, 50), numbers(50, seed=3), numbers(50, seed=4)
    noise = noise - np.average(noise, weights=w)
    error = math.sqrt(np.average(noise**2, weights=w) / 50)
    for gain, better in ((1.05 * error, True), (0.95 * error, False), (0.0, False), (-2 * error, False)):
        assert is_clearly_better(others + noise + gain, others, w) is better


# ---- stacking ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 4])
def test_stacking_is_as_likely_as_the_optimum_of_scipy(k, weighted):
    far = 700 * (np.arange(40) == 3)[:, None]  # One row is far from all.
    log_densities = -0.5 * numbers(40, k) ** 2 - far
    w = np.linspace(0.2, 3.0, 40) if weighted else np.ones(40)

    def loss(p):
        return -np.average(np.log(np.exp(log_densities + far) @ p), weights=w)

    expected = simplex(loss, k)
    found = stacking_weights(log_densities, w if weighted else None, n_steps=5000)
    assert found.sum() == pytest.approx(1.0)
    assert loss(found) < loss(expected) + 1e-5
    assert_allclose(found, expected, atol=0.01)


def test_one_that_dominates_gets_all_and_equals_share_alike():
    log_densities = numbers(30, 1) + np.array([[-5.0, 0.0, -5.0]])
    assert stacking_weights(log_densities)[1] > 0.99
    assert_allclose(stacking_weights(numbers(30, 1) + np.zeros((1, 3))), 1 / 3)
    assert_array_equal(stacking_weights(numbers(30, 1)), [1.0])
