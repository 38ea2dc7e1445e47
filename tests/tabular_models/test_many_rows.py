"""Machines of many rows: what is tried, refined and judged in leaves, and which left-out predictions count."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.kernels import Gaussian, Laplace, Linear
from mercer.tabular_models.fitters import ProcessFitter
from mercer.tabular_models.learned import Rows
from mercer.tabular_models.leaves import QUICK, JudgedLeaves
from mercer.tabular_models.many_rows import in_one_piece, tried_in_a_leaf
from mercer.tabular_models.partition import random_leaf
from mercer.tabular_models.plans import Plan, contenders
from mercer.tabular_models.settings import Setting
from mercer.tabular_models.tuning import Iterate
from tests import naive
from tests.examples_of import numbers
from tests.tabular_models.test_finish import KERNEL, RIDGE, plan_of
from tests.tabular_models.test_learning import learned, space
from tests.tabular_models.test_race import search
from tests.tabular_models.test_table import repeated_rows, smooth_rows, table_of


def plan(kernel, warp, cost, metric="ard"):
    return Plan(Setting(kernel, warp, metric, 1), [Iterate(kernel, 0.1, cost)])


def test_every_kernel_is_a_contender_under_every_warp_but_linear_ones():
    plans = [plan(Gaussian(1.0), "none", 0.0), plan(Gaussian(1.0), "none", 0.1, "full")]
    plans += [plan(Gaussian(1.0), "none", 0.2 + 0.1 * i, "diagonal") for i in range(9)]
    plans += [plan(Laplace(1.0), "rank", 5.0), plan(Laplace(1.0), "rank", 6.0), plan(Laplace(1.0), "log", 7.0)]
    plans += [plan(Linear(), "none", 8.0), plan(Linear(), "rank", 9.0)]
    found = contenders(plans, 99)
    assert [each.cost for each in found] == sorted(each.cost for each in found)
    names = [(type(each.setting.kernel).__name__, each.setting.warp, each.cost) for each in found]
    assert ("Laplace", "rank", 5.0) in names
    assert ("Laplace", "log", 7.0) in names
    assert ("Laplace", "rank", 6.0) not in names
    assert ("Linear", "rank", 9.0) not in names
    assert len(contenders(plans, 4)) == 4


def test_a_random_leaf_has_rows_that_are_near_each_other():
    Z = table_of(numbers(200, 2), numbers(200)).warped("none")
    rows = random_leaf(Gaussian(1.0), Z, 30, np.random.RandomState(0))
    assert 10 < len(rows) <= 30
    near, all_pairs = (np.linalg.norm(z[:, None] - z[None], axis=2).mean() for z in (Z[rows].numpy(), Z.numpy()))
    assert near < 0.6 * all_pairs
    others = {tuple(random_leaf(Gaussian(1.0), Z, 30, np.random.RandomState(seed))) for seed in range(6)}
    assert len(others) > 1
    alike = Z[:1].expand(50, 2)
    assert len(random_leaf(Gaussian(1.0), alike, 30, np.random.RandomState(0))) == 30


def wave_beside_a_slope(n=1500):
    """The first column counts in a wave that few rows drawn from all cannot follow, the second in a slope."""
    X = np.random.default_rng(0).uniform(size=(n, 2))
    return X, np.sin(60 * X[:, 0]) + 3 * X[:, 1] + 0.05 * np.random.default_rng(1).normal(size=n)


@pytest.mark.parametrize("is_rough", [False, True])
def test_scales_of_dense_rows_are_taken_where_they_predict_better(is_rough, few_rows):
    X, y = wave_beside_a_slope() if is_rough else smooth_rows(300)
    table, random = table_of(X, y, standardize=True), np.random.RandomState(0)
    rows = Rows.drawn(table, random)
    begun = Plan(Setting(Gaussian(), "none", "ard", 1), [Iterate(Gaussian(1.0), 0.1)])
    leaves = JudgedLeaves.drawn(begun.iterates[-1], begun, table, rows.fresh(), random, 200)
    before = leaves.tuned(search(), begun, begun.iterates[-1], QUICK)
    (found,) = tried_in_a_leaf(search(), leaves, [begun], rows.some, random)
    assert found.iterate.cost == pytest.approx(min(before.cost, found.iterate.cost))
    if is_rough:
        assert found.is_dense
        assert found.iterate.cost < before.cost - 0.1
    factor = found.iterate.kernel.single_metric().factor
    assert (factor is None) != found.is_dense


def test_left_out_predictions_of_a_process_in_one_piece_are_its_own_at_fresh_rows():
    table = table_of(*repeated_rows(40))
    fresh = np.arange(len(table)) % 2 > 0
    leaves = JudgedLeaves.drawn(Iterate(KERNEL, RIDGE), plan_of(), table, fresh, np.random.RandomState(0), 8)
    trial = leaves.judged(search(), plan_of(), Iterate(KERNEL, RIDGE))
    given = search(ProcessFitter())
    fit = in_one_piece(given, Iterate(KERNEL, RIDGE), trial, 0.7, table, fresh)
    K = naive.kernel_matrix(KERNEL, table.X, table.X)
    misses, variances = naive.ridge_leave_one_out(K, table.y.numpy(), RIDGE, table.mass.numpy())
    assert_array_equal(fit.judged, np.flatnonzero(fresh))
    assert_allclose(fit.left_out.y - fit.left_out.mean, misses[fresh], atol=1e-8)
    assert_allclose(fit.left_out.unit_variance, variances[fresh], rtol=1e-8)
    assert fit.machine.share == 0.7
    assert fit.machine.leaves is None
    ridge = in_one_piece(search(), Iterate(KERNEL, RIDGE), trial, 0.7, table, fresh)
    assert_array_equal(ridge.left_out.mean, trial.left_out.mean)


def test_rows_that_are_many_but_not_too_many_are_judged_in_leaves_and_solved_in_one_piece(few_rows, monkeypatch):
    monkeypatch.setattr("mercer.tabular_models.learning.MOST_EXACT_ROWS", 200)
    table = table_of(*smooth_rows(160))
    (fit,) = learned(table, space("laplace", metric="ard", average=False), search(ProcessFitter())).fits
    assert fit.machine.leaves is None
    fresh = np.ones(160, dtype=bool)
    fresh[np.random.RandomState(0).permutation(160)[:80]] = False
    assert_array_equal(fit.judged, np.flatnonzero(fresh))
