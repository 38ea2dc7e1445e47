"""Machines on all rows of a table, in one piece and in leaves, against systems that are solved by hand."""

import math
from unittest.mock import Mock

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from mercer import Mahalanobis
from mercer.kernels import Gaussian, Laplace
from mercer.tabular_models import evidence, finish, race, screen
from mercer.tabular_models.evidence import EvidenceTerms, matrix_evidence
from mercer.tabular_models.finish import exact_iterate, on_dense_rows, on_more_rows, solved
from mercer.tabular_models.fitters import SMALLEST_RIDGE, ProcessFitter, RidgeFitter
from mercer.tabular_models.leaves import cut_into_leaves
from mercer.tabular_models.metric_learning import relearned, with_length_scales
from mercer.tabular_models.partition import random_leaf
from mercer.tabular_models.plans import Plan
from mercer.tabular_models.settings import Setting
from mercer.tabular_models.tuning import Freedom, Iterate, tuned
from tests import naive
from tests.examples_of import numbers
from tests.tabular_models.test_race import Stopped, search
from tests.tabular_models.test_table import repeated_rows, smooth_rows, table_of

KERNEL, RIDGE = Laplace(1.1, metric=Mahalanobis([0.7, 1.2])), 0.2
STEPS = [Iterate(Laplace(1.1), 0.2), Iterate(Laplace(0.9), 0.1)]


def plan_of(metric="identity", iterates=None, warp="none"):
    iterates = [Iterate(KERNEL, RIDGE)] if iterates is None else iterates
    return Plan(Setting(iterates[0].kernel, warp, metric, len(iterates) - 1), iterates)


def machine_of(iterate, table, leaves=None):
    return solved(iterate, plan_of(), table, leaves, variances=False).machine


def weighted_table():
    return table_of(*repeated_rows(60))


def in_leaves(table):
    return cut_into_leaves(Iterate(KERNEL, RIDGE), plan_of(), table, np.random.RandomState(0), 6)


def naive_alpha(table, rows, kernel=KERNEL, ridge=RIDGE):
    """The coefficients of some of the rows of a table, solved by themselves."""
    X, w = table.X[rows], table.mass.numpy()[rows]
    return np.linalg.solve(naive.kernel_matrix(kernel, X, X) + np.diag(ridge / w), table.y.numpy()[rows])


# ---- one piece ---------------------------------------------------------------------------------------------


def test_a_machine_of_all_rows_is_the_system_solved_by_hand():
    table = weighted_table()
    machine = machine_of(Iterate(KERNEL, RIDGE), table)
    alpha = naive_alpha(table, np.arange(len(table)))
    assert_allclose(machine.alpha, alpha, atol=1e-9)
    assert_array_equal(machine.rows, table.X)
    assert_array_equal(machine.weights, table.weights)
    assert (machine.kernel, machine.ridge, machine.share) == (KERNEL, RIDGE, 1.0)
    assert machine.columns is table.columns("none")
    assert machine.partition is machine.leaves is None
    at = numbers(5, 2, seed=5)
    assert_allclose(machine.mean(at), naive.kernel_matrix(KERNEL, at, table.X) @ alpha, atol=1e-9)


def test_rows_without_weights_have_none_in_the_machine():
    table = table_of(numbers(8, 2), numbers(8))
    assert machine_of(Iterate(KERNEL, RIDGE), table).weights is None


def test_the_output_scale_is_that_of_the_largest_evidence():
    table = table_of(numbers(9, 2), numbers(9, 2, seed=1))
    found = solved(Iterate(KERNEL, RIDGE), plan_of(), table, None, variances=False)
    scales = found.machine.output_scales
    assert_array_equal(scales, found.evidence.best_scales())
    A, y = naive.kernel_matrix(KERNEL, table.X, table.X) + RIDGE * np.eye(9), table.y.numpy()
    for factor in (1.0, 0.9, 1.1):
        densities = [
            multivariate_normal.logpdf(column, cov=factor * s * A) for column, s in zip(y.T, scales, strict=True)
        ]
        assert found.evidence.log_evidence(factor * scales) == pytest.approx(sum(densities))
        assert factor == 1.0 or sum(densities) < found.evidence.log_evidence(scales)
    # A target without any spread has a scale above 0 nevertheless.
    assert (EvidenceTerms(9, np.zeros(2), 1.0).best_scales() > 0).all()


def test_the_output_scale_of_the_largest_evidence_hears_of_repeats():
    """Measurements of the same row say what the noise is, and so what the scale is that it is relative to."""
    table = table_of(*repeated_rows(60))
    found = solved(Iterate(KERNEL, RIDGE), plan_of(), table, None, variances=True)
    A, y = naive.kernel_matrix(KERNEL, table.X, table.X) + np.diag(RIDGE / table.mass.numpy()), table.y.numpy()
    further, scatter = table.repeats
    q = (y * np.linalg.solve(A, y)).sum(axis=0) + scatter.numpy() / RIDGE
    assert_allclose(found.machine.output_scales, q / (len(table) + further))


@pytest.mark.parametrize("cut", [False, True], ids=["one piece", "leaves"])
def test_variances_left_out_are_those_of_refits_without_the_row_and_the_evidence_is_a_density(cut):
    table = table_of(numbers(30, 2), numbers(30, 2, seed=1), np.linspace(0.5, 3.0, 30))
    leaves = in_leaves(table) if cut else None
    found = solved(Iterate(KERNEL, RIDGE), plan_of(), table, leaves, variances=True)
    total, scales = 0.0, found.machine.output_scales
    q = np.zeros(2)
    for rows in leaves.pieces() if cut else [np.arange(30)]:
        K, y, w = naive.kernel_matrix(KERNEL, *2 * [table.X[rows]]), table.y.numpy()[rows], table.mass.numpy()[rows]
        _, expected = naive.ridge_leave_one_out(K, y, RIDGE, w)
        assert_allclose(found.left_out_variances[rows], expected, rtol=1e-8)
        A = K + np.diag(RIDGE / w)
        q += (y * np.linalg.solve(A, y)).sum(axis=0)
        total += sum(multivariate_normal.logpdf(column, cov=s * A) for column, s in zip(y.T, scales, strict=True))
    assert_allclose(scales, q / 30)  # Leaves share one output scale.
    assert found.evidence.log_evidence(scales) == pytest.approx(total)


def test_the_evidence_of_repeated_rows_is_the_one_that_was_climbed():
    table = weighted_table()
    found = solved(Iterate(KERNEL, RIDGE), plan_of(), table, None, variances=True)
    value = matrix_evidence(KERNEL.matrix(table.warped("none")), table.y, math.log(RIDGE), table.weights, table.repeats)
    rows = len(table) + table.repeats.further
    assert found.evidence.log_evidence(found.evidence.best_scales()) == pytest.approx(-2 * rows * value)


# ---- more rows ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["diagonal", "full"])
def test_with_more_rows_than_the_screen_had_the_metric_is_learned_on_them(metric, monkeypatch):
    monkeypatch.setattr(finish, "SCREEN_ROWS", 20)
    monkeypatch.setattr(finish, "METRIC_ROWS", 30)
    table, plan = table_of(*smooth_rows(40)), plan_of(metric, STEPS)
    part = table.take(np.arange(30))
    expected = relearned(STEPS, metric, part, part.warped("none"), 1e-7)[-1]
    found = on_more_rows(search(), plan, table)
    assert (found.kernel, found.ridge) == (expected.kernel, expected.ridge)
    few = table.take(np.arange(20))
    assert on_more_rows(search(), plan, few) is STEPS[-1]
    assert on_more_rows(search(), plan_of(), table) == Iterate(KERNEL, RIDGE)


def test_length_scales_are_followed_further_on_more_rows(monkeypatch):
    monkeypatch.setattr(finish, "SCREEN_ROWS", 20)
    table, last = table_of(*smooth_rows(40)), Iterate(Gaussian(1.5), 0.1)
    part = table.take(np.arange(30))
    expected = with_length_scales(last, part, part.warped("none"), noise_floor=SMALLEST_RIDGE, steps=finish.MORE_STEPS)
    plan = plan_of("ard", [Iterate(Gaussian(2.0), 0.3), last])
    found = on_more_rows(search(), plan, table, evidence_rows=30)
    assert (found.kernel, found.ridge) == (expected.kernel, expected.ridge)


def test_length_scales_are_not_followed_beyond_the_time_limit(monkeypatch):
    monkeypatch.setattr(finish, "SCREEN_ROWS", 20)
    table, last = table_of(*smooth_rows(40)), Iterate(Gaussian(1.5), 0.1)
    evaluated = Mock(wraps=evidence.negative_log_evidence)
    monkeypatch.setattr(evidence, "negative_log_evidence", evaluated)
    over = search()._replace(deadline=Stopped(1.0))
    plan, Z = plan_of("ard", [last, last]), table.warped("none")
    for follow in (
        lambda: on_more_rows(over, plan, table),
        lambda: screen.by_evidence(over, last, table, Z, 15),
        lambda: race.judged(over, plan, table, (np.arange(20), np.arange(20, 40))),
    ):
        evaluated.reset_mock()
        follow()
        assert evaluated.call_count == 1


@pytest.mark.parametrize("fitter", [RidgeFitter(), ProcessFitter(by_evidence=True)])
def test_bandwidth_and_ridge_of_one_machine_are_tuned_finely(fitter, monkeypatch):
    monkeypatch.setattr(finish, "TUNE_ROWS", 30)
    table = table_of(*smooth_rows(40))
    plan = plan_of("identity", [Iterate(Gaussian(2.0), 0.1)])
    found = exact_iterate(search(fitter), plan, table)
    part = table.take(np.arange(30))
    expected = tuned(Gaussian(2.0), 0.1, [(part, part.warped("none"))], fitter, Freedom(), fine=True)
    assert (found.kernel, found.ridge) == (expected.kernel, expected.ridge)
    kept = exact_iterate(search(fitter, freedom=Freedom(bandwidth=False, ridge=False)), plan, table)
    assert (kept.kernel, kept.ridge) == (Gaussian(2.0), 0.1)


# ---- leaves ------------------------------------------------------------------------------------------------


def test_a_machine_in_leaves_is_a_machine_solved_by_hand_in_each():
    table = weighted_table()
    leaves = in_leaves(table)
    machine = machine_of(Iterate(KERNEL, RIDGE), table, leaves)
    at = numbers(30, 2, seed=5)
    asked = leaves.partition.leaves_of(at)
    assert len(np.unique(asked)) > 2
    for leaf in range(leaves.partition.n_leaves):
        own = np.flatnonzero(leaves.of_row == leaf)
        alpha = naive_alpha(table, own)
        assert_allclose(machine.alpha[own], alpha, atol=1e-9)
        x = at[asked == leaf]
        K = naive.kernel_matrix(KERNEL, x, table.X[own]).reshape(len(x), len(own))
        assert_allclose(machine.mean(at)[asked == leaf], K @ alpha, atol=1e-9)
    assert_array_equal(machine.leaves, leaves.of_row)


def test_more_rows_are_worth_more_rows_of_evidence_within_bounds():
    found = [finish.evidence_rows_of_many(n) for n in (5000, 15_000, 18_000, 24_000, 10**6)]
    assert found == [1000, 1000, 1200, 1600, 1600]


def test_length_scales_follow_the_evidence_on_a_leaf_of_dense_rows():
    table, last = table_of(*smooth_rows(60)), Iterate(Gaussian(1.5), 0.1)
    plan = plan_of("ard", [Iterate(Gaussian(2.0), 0.3), last])
    leaf = random_leaf(last.kernel, table.warped("none"), 20, np.random.RandomState(3))
    part = table.take(leaf)
    expected = with_length_scales(last, part, part.warped("none"), noise_floor=SMALLEST_RIDGE, steps=finish.MORE_STEPS)
    found = on_dense_rows(search(), plan, last, table, 20, np.random.RandomState(3))
    assert (found.kernel, found.ridge) == (expected.kernel, expected.ridge)
    assert found.kernel.single_metric() != last.kernel.single_metric()
