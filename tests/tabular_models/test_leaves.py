"""Leaves of a table: which rows are in which, and what is tuned and judged in them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.kernels import Laplace
from mercer.tabular_models.fitters import ProcessFitter, RidgeFitter
from mercer.tabular_models.leaves import Effort, JudgedLeaves, Leaves, cut_into_leaves, thinned
from mercer.tabular_models.tuning import Freedom, Iterate, tuned
from tests import naive
from tests.tabular_models.test_finish import KERNEL, RIDGE, in_leaves, plan_of, weighted_table
from tests.tabular_models.test_race import search


def test_every_row_is_in_one_leaf_of_few_rows():
    table = weighted_table()
    leaves = in_leaves(table)
    rows = [leaves.rows_of(leaf) for leaf in range(leaves.partition.n_leaves)]
    assert len(rows) > 2
    assert max(map(len, rows)) <= 6
    assert_array_equal(np.sort(np.concatenate(rows)), np.arange(len(table)))
    assert isinstance(leaves, Leaves)


def test_another_direction_first_gives_other_borders():
    table = weighted_table()
    one, other = (
        cut_into_leaves(Iterate(KERNEL, RIDGE), plan_of(), table, np.random.RandomState(0), 6, first)
        for first in (0, 1)
    )
    assert not np.array_equal(one.of_row == one.of_row[0], other.of_row == other.of_row[0])
    assert one.partition.directions[0] @ other.partition.directions[0] < 0.9


def test_settings_are_judged_on_fresh_rows_of_some_leaves():
    table = weighted_table()
    leaves, sampled = in_leaves(table), [2, 0, 1]
    fresh = np.arange(len(table)) % 3 > 0
    plan = plan_of()
    trial = JudgedLeaves(table, leaves, sampled, fresh).judged(search(), plan, Iterate(KERNEL, RIDGE), most=2)
    sampled = sampled[:2]
    rows, misses, variances = [], [], []
    for leaf in sampled:
        own = np.flatnonzero(leaves.of_row == leaf)
        K = naive.kernel_matrix(KERNEL, table.X[own], table.X[own])
        missed, variance = naive.ridge_leave_one_out(K, table.y.numpy()[own], RIDGE, table.mass.numpy()[own])
        for i, row in enumerate(own):
            if fresh[row]:
                rows.append(row)
                misses.append(missed[i])
                variances.append(variance[i])
    assert_array_equal(trial.rows, rows)
    assert_allclose(trial.left_out.y, table.y[rows])
    assert_allclose(trial.left_out.weights, table.mass[rows])
    assert_allclose(trial.left_out.y - trial.left_out.mean, misses, atol=1e-8)
    assert_allclose(trial.left_out.unit_variance, variances, rtol=1e-8)
    assert_allclose(trial.scores, -np.mean(np.square(misses), axis=1), atol=1e-8)
    assert trial.plan is plan


@pytest.mark.parametrize("effort", [Effort(1, 1000, fine=False), Effort(2, 1000, fine=True), Effort(2, 7, fine=False)])
def test_bandwidth_and_ridge_are_tuned_on_some_rows_of_the_first_leaves(effort):
    table = weighted_table()
    leaves, sampled = in_leaves(table), [1, 3, 0]
    fresh = np.ones(len(table), dtype=bool)
    begun = Iterate(Laplace(9.0), 5.0)
    last = JudgedLeaves(table, leaves, sampled, fresh).tuned(search(), plan_of(), begun, effort)
    parts = []
    for leaf in sampled[: effort.leaves]:
        own = leaves.rows_of(leaf)
        if effort.rows < len(own):
            own = own[np.linspace(0, len(own) - 1, effort.rows).astype(int)]
        part = table.take(own)
        parts.append((part, part.warped("none")))
    expected = tuned(begun.kernel, begun.ridge, parts, RidgeFitter(), Freedom(), fine=effort.fine)
    assert (last.kernel, last.ridge) == (expected.kernel, expected.ridge)
    assert last.ridge != 5.0


def test_a_process_is_judged_by_its_errors_in_leaves():
    table = weighted_table()
    leaves = JudgedLeaves(table, in_leaves(table), [0, 1], np.ones(len(table), dtype=bool))
    process, ridge = (
        leaves.judged(search(fitter), plan_of(), Iterate(KERNEL, RIDGE)) for fitter in (ProcessFitter(), RidgeFitter())
    )
    assert_array_equal(process.scores, ridge.scores)


def test_leaves_are_drawn_at_random_and_all_are_there_where_they_are_few():
    table, iterate = weighted_table(), Iterate(KERNEL, RIDGE)
    fresh = np.ones(len(table), dtype=bool)
    many = JudgedLeaves.drawn(iterate, plan_of(), table, fresh, np.random.RandomState(0), 3)
    assert len(set(many.sampled)) == 4 < many.leaves.partition.n_leaves
    few = JudgedLeaves.drawn(iterate, plan_of(), table, fresh, np.random.RandomState(0), len(table) // 2 + 1)
    assert sorted(few.sampled) == list(range(few.leaves.partition.n_leaves))


def test_rows_are_thinned_evenly():
    rows = np.arange(100, 111)
    assert_array_equal(thinned(rows, 11), rows)
    assert_array_equal(thinned(rows, 6), [100, 102, 104, 106, 108, 110])
