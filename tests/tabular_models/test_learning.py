"""From a table to machines on all its rows: what is chosen, what is averaged, and which rows count where."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.kernels import Gaussian, Laplace, Linear, ProductLaplace
from mercer.tabular_models import finish, screen
from mercer.tabular_models.fitters import ProcessFitter, RidgeFitter
from mercer.tabular_models.landmark_table import Landmarks
from mercer.tabular_models.learned import Space, averaged
from mercer.tabular_models.learning import learn
from mercer.tabular_models.settings import Setting, kernels_of
from mercer.tabular_models.tuning import Freedom
from tests import naive
from tests.examples_of import numbers
from tests.tabular_models.test_race import Stopped, search, trial
from tests.tabular_models.test_table import repeated_rows, smooth_rows, table_of

FITTERS = {"ridge": RidgeFitter(), "evidence": ProcessFitter(by_evidence=True)}
fitters = pytest.mark.parametrize("fitter", FITTERS.values(), ids=FITTERS.keys())
GIVEN = Freedom(bandwidth=False, ridge=False)


def space(kernel="laplace", warp="none", metric="identity", average=True, bandwidth="auto"):
    return Space(kernels_of(kernel, bandwidth, 1000, 3), warp, metric, average, trends=False)


def learned(table, space, given=None, landmarks=None, exact=False, seed=0):
    return learn(given or search(), space, table, landmarks, exact, np.random.RandomState(seed))


def test_given_numbers_make_the_machine_that_is_solved_by_hand():
    table = table_of(*repeated_rows(60))
    found = learned(table, space(Gaussian(0.8), bandwidth=None), search(freedom=GIVEN)._replace(ridge=0.3))
    (machine,) = found.machines
    (fit,) = found.fits
    A = naive.kernel_matrix(Gaussian(0.8), table.X, table.X) + np.diag(0.3 / table.mass.numpy())
    assert_allclose(machine.alpha, np.linalg.solve(A, table.y), atol=1e-9)
    assert machine.share == 1.0
    assert_array_equal(fit.row_index, np.arange(len(table)))
    assert found.is_complete


def test_left_out_predictions_of_the_identity_are_plain_leave_one_out():
    table = table_of(*repeated_rows(60))
    given = search(freedom=GIVEN)._replace(ridge=0.3)
    (fit,) = learned(table, space(Gaussian(0.8), bandwidth=None), given).fits
    K = naive.kernel_matrix(Gaussian(0.8), table.X, table.X)
    misses, variances = naive.ridge_leave_one_out(K, table.y.numpy(), 0.3, table.mass.numpy())
    # They are in the random order of the search.
    order = np.random.RandomState(0).permutation(len(table))
    assert_allclose(fit.left_out.y, table.y[order])
    assert_allclose(fit.left_out.y - fit.left_out.mean, misses[order], atol=1e-8)
    (process,) = learned(
        table, space(Gaussian(0.8), bandwidth=None), given._replace(fitter=ProcessFitter(by_evidence=True))
    ).fits
    assert_allclose(process.left_out.unit_variance, variances[order], rtol=1e-8)


def test_variances_beside_the_errors_of_a_process_are_those_of_the_machine_that_is_kept(few_rows):
    table = table_of(*smooth_rows(90))
    found = learned(table, space("gaussian"), search(ProcessFitter(by_evidence=True)))
    (fit,) = found.fits
    kept = fit.machine
    K = naive.kernel_matrix(kept.kernel, *2 * [kept.columns.transform(table.X)])
    _, variances = naive.ridge_leave_one_out(K, table.y.numpy(), kept.ridge, np.ones(90))
    place = {float(value): i for i, value in enumerate(table.y[:, 0])}
    judged = [place[float(value)] for value in fit.left_out.y[:, 0]]
    assert_allclose(fit.left_out.unit_variance, variances[judged], rtol=1e-6)
    # It was tuned on more rows than the machine of the race.
    (entry,) = (entry for entry in found.history if entry["score"] is not None)
    assert (entry["bandwidth"], entry["ridge"]) != (kept.kernel.bandwidth, kept.ridge)


@fitters
def test_several_machines_have_the_largest_share_first_and_predict_the_same_left_out_rows(fitter):
    X = numbers(90, 3)
    table = table_of(X, np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 0.5 * numbers(90, seed=4))
    found = learned(table, space("auto"), search(fitter))
    shares = [machine.share for machine in found.machines]
    assert len(shares) > 1
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 1.0 + 1e-12
    for fit in found.fits:
        assert_array_equal(fit.left_out.y, found.fits[0].left_out.y)
        assert len(fit.row_index) == len(fit.machine.rows) == 90
    alone = learned(table, space("auto", average=False), search(fitter))
    assert [machine.share for machine in alone.machines] == [1.0]


def test_everything_that_was_tried_is_in_the_history():
    table = table_of(*smooth_rows(30))
    found = learned(table, space("auto", "auto", "full"), search(n_iter=1))
    screened = [entry for entry in found.history if entry["score"] is None]
    judged = [entry for entry in found.history if entry["score"] is not None]
    kinds = {type(kernel).__name__ for kernel in kernels_of("auto", "auto", 1000, 3)}
    assert {(entry["kernel"], entry["warp"]) for entry in screened if entry["metric"] == "identity"} == {
        (kind, warp) for kind in kinds for warp in ("none", "log", "rank")
    }
    assert "full" in {entry["metric"] for entry in judged}
    assert {(entry["kernel"], entry["warp"], entry["metric"], entry["iterate"]) for entry in judged} <= {
        (entry["kernel"], entry["warp"], entry["metric"], entry["iterate"]) for entry in screened
    }
    assert all(entry["rows"] == 30 for entry in found.history)


def test_only_the_last_step_of_the_metric_that_was_asked_for():
    table = table_of(*smooth_rows(30))
    found = learned(table, space(metric="full"), search(n_iter=2, last=True))
    assert [(entry["metric"], entry["iterate"]) for entry in found.history if entry["score"] is not None] == [
        ("full", 2)
    ]
    assert found.machines[0].kernel.metric.kind == "full"


@pytest.mark.parametrize("stop", [0.0, 1.0])
def test_without_a_step_the_last_one_is_the_identity(stop):
    """No step was asked for, or there was no time for any: what there is counts as the last."""
    table = table_of(*smooth_rows(30))
    given = search(n_iter=0 if stop == 0.0 else 2, last=True)._replace(deadline=Stopped(stop))
    found = learned(table, space(metric="full"), given)
    assert found.machines[0].kernel.single_metric().factor is None


def test_a_search_that_was_cut_short_says_so():
    """Settings that the screen had no time for were not tried, even if the rest went quickly."""
    table = table_of(*smooth_rows(30))
    whole = learned(table, space("auto"), search()._replace(deadline=Stopped(0.0)))
    assert whole.is_complete
    for stop in (0.3, 0.5, 1.0):
        found = learned(table, space("auto", metric="full"), search()._replace(deadline=Stopped(stop)))
        assert len(found.history) < len(whole.history)
        assert not found.is_complete


def test_the_same_seed_gives_the_same_machines_and_the_search_does_not_depend_on_the_order_of_rows():
    X, y = smooth_rows(60)
    turned = np.random.default_rng(1).permutation(60)
    one, other = (learned(table_of(*rows), space("auto"), seed=3).machines for rows in ((X, y), (X[turned], y[turned])))
    for a, b in zip(one, other, strict=True):
        assert_array_equal(a.alpha, b.alpha)
        assert (a.kernel, a.ridge, a.share) == (b.kernel, b.ridge, b.share)


# ---- shares ------------------------------------------------------------------------------------------------


def test_without_an_average_the_simplest_of_the_best_counts_alone():
    best, worse = trial(0.5, "full", 2), trial(-5.0, "identity", 0)
    ((chosen, share),) = averaged(search(), space(average=False), [worse, best])
    assert chosen is best
    assert share == 1.0
    ((chosen, share),) = averaged(search(), space(), [worse])
    assert chosen is worse
    assert share == 1.0


def test_trials_without_a_share_are_left_out_of_the_average():
    good, bad = trial(0.0, "full", 2), trial(0.0, "identity", 0)
    y = numbers(100, 1)
    good = good._replace(left_out=good.left_out._replace(y=y, mean=y + 0.1 * numbers(100, 1, seed=1)))
    bad = bad._replace(left_out=bad.left_out._replace(y=y, mean=9 * numbers(100, 1, seed=2)))
    ((chosen, share),) = averaged(search(), space(), [bad, good])
    assert chosen is good
    assert 0.9 < share <= 1.0


# ---- many rows ---------------------------------------------------------------------------------------------


@fitters
@pytest.mark.parametrize("metric", ["identity", "full", "ard"])
def test_many_rows_are_solved_in_leaves(few_rows, fitter, metric):
    X, y = smooth_rows(160)
    table = table_of(X, y)
    found = learned(table, space("laplace", metric=metric), search(fitter, n_iter=1))
    order = np.random.RandomState(0).permutation(160)
    for fit in found.fits:
        machine = fit.machine
        assert np.bincount(machine.leaves).max() <= 30
        assert machine.partition.n_leaves == len(np.unique(machine.leaves))
        Z = machine.columns.transform(table.X)
        for leaf in np.unique(machine.leaves):
            own = machine.leaves == leaf
            A = machine.kernel.matrix(Z[own]) + machine.ridge * np.eye(own.sum())
            assert_allclose(machine.alpha[own], np.linalg.solve(A, table.y.numpy()[own]), rtol=1e-6, atol=1e-8)
        # What is judged had no part in the metric, which saw the first half of the random order.
        judged = {float(value) for value in fit.left_out.y[:, 0]}
        assert judged <= {float(value) for value in table.y[order[80:], 0]}
        assert len(judged) > 20


def test_many_rows_are_solved_in_one_piece_where_that_is_asked_for(few_rows):
    table = table_of(*smooth_rows(110))
    (fit,) = learned(table, space(), exact=True).fits
    assert fit.machine.leaves is None
    assert fit.machine.partition is None
    (few,) = learned(table.take(np.arange(100)), space()).fits
    assert few.machine.leaves is None


def test_metrics_of_many_rows_are_learned_on_more_than_the_screen_had(few_rows):
    table, given = table_of(*smooth_rows(90)), search(n_iter=1, last=True)
    (machine,) = learned(table, space(metric="full"), given).machines
    order = np.random.RandomState(0).permutation(90)
    plans = screen.screen(given, table.take(order[:40]), [Setting(Laplace(), "none")], [["full"]])
    plan = next(plan for plan in plans if plan.setting.metric == "full")
    assert machine.kernel == finish.exact_iterate(given, plan, table.take(order[:60])).kernel
    assert machine.kernel.metric != plan.iterates[-1].kernel.metric


@fitters
@pytest.mark.parametrize("method", ["uniform", "kmeans++"])
def test_landmarks_are_rows_of_the_table_for_every_machine(fitter, method):
    X = numbers(90, 3)
    table = table_of(X, np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 0.1 * numbers(90, seed=4))
    found = learned(table, space("auto"), search(fitter), landmarks=Landmarks(20, method, 5, 64.0))
    for fit in found.fits:
        assert len(fit.row_index) == 20
        assert_array_equal(fit.machine.rows, table.X[fit.row_index])
        assert np.isfinite(fit.evidence.log_evidence(fit.evidence.best_scales()))
        assert_array_equal(fit.left_out.y, found.fits[0].left_out.y)


def test_a_ridge_that_is_given_is_kept_on_landmarks_too():
    table = table_of(*smooth_rows(40))
    given = search(freedom=Freedom(ridge=False))._replace(ridge=0.37)
    for landmarks in (None, Landmarks(20, "uniform", 0, 64.0)):
        for kernel in (Gaussian(), ProductLaplace(), Linear()):
            for machine in learned(table, space(kernel), given, landmarks).machines:
                assert machine.ridge == 0.37
