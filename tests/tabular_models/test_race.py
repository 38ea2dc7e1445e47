"""Which setting a table wants: what the screen tries, and judgments against refits without each row."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from mercer import Mahalanobis
from mercer.kernels import Gaussian, Laplace, Linear, Matern32, ProductLaplace
from mercer.tabular_models import race as race_module
from mercer.tabular_models.deadline import Deadline
from mercer.tabular_models.fitters import SMALLEST_RIDGE, LeftOut, ProcessFitter, RidgeFitter
from mercer.tabular_models.metric_learning import advanced, with_length_scales
from mercer.tabular_models.plans import Plan, Search, finalists, history_entry, is_alike
from mercer.tabular_models.race import FOLDS, Trial, race, simplest_of_the_best, splits
from mercer.tabular_models.screen import screen
from mercer.tabular_models.settings import Setting
from mercer.tabular_models.tuning import Freedom, Iterate, tuned
from tests import naive
from tests.examples_of import numbers
from tests.tabular_models.test_metric_learning import naive_step
from tests.tabular_models.test_table import smooth_rows, table_of

FITTERS = {"ridge": RidgeFitter(), "evidence": ProcessFitter(by_evidence=True)}
FREE = Freedom()
SMOOTH = Gaussian(1.0)
fitters = pytest.mark.parametrize("fitter", FITTERS.values(), ids=FITTERS.keys())


def search(fitter=FITTERS["ridge"], freedom=FREE, n_iter=2, last=False, limit=None):
    return Search(fitter, freedom, 1e-2, n_iter, last, Deadline(limit))


class Stopped(Deadline):
    """A deadline of which so much of the time has passed that shares up to `share` are over."""

    def __init__(self, share):
        super().__init__(1.0)
        self.share = share

    def passed(self):
        return self.share


def bent_rows(n=20, weights=None):
    X = numbers(n, 2)
    return table_of(X, X[:, 0] ** 2 + 0.3 * X[:, 1] + 0.2 * numbers(n, seed=7), weights)


# ---- the rows of a judgment --------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 7, FOLDS[0][0], FOLDS[0][0] + 1, FOLDS[-1][0], FOLDS[-1][0] + 1, 2000])
def test_a_row_that_is_judged_had_no_part_in_the_metric(n):
    parts = splits(n)
    for learn, judge in parts:
        assert not set(learn) & set(judge)
        assert len(learn) >= n // 2
    judged_rows = np.concatenate([judge for _, judge in parts])
    assert len(set(judged_rows)) == len(judged_rows)
    if n <= FOLDS[-1][0]:
        assert_array_equal(np.sort(judged_rows), np.arange(n))
        assert len(parts) == min(n, next(folds for most, folds in FOLDS if n <= most))
    else:
        assert_array_equal(judged_rows, np.arange(n // 2, n))


PLANS = {
    "identity": [Iterate(Laplace(1.1), 0.2)],
    "full": [Iterate(Laplace(1.1), 0.2), Iterate(Laplace(0.9), 0.1), Iterate(Laplace(0.8), 0.05)],
    "diagonal": [Iterate(Laplace(1.1), 0.2), Iterate(Laplace(0.9), 0.1)],
    "ard": [Iterate(Gaussian(1.1), 0.2), Iterate(Gaussian(0.9), 0.1)],
}


def naive_kernel(plan, metric, part):
    """The last kernel of a plan and its ridge, the metric learned step by step on a part of the rows."""
    last = plan[0]
    for planned in plan[1:]:
        if metric == "ard":
            last = with_length_scales(last, part, part.warped("none"), noise_floor=SMALLEST_RIDGE)
        else:
            M = naive_step(last.kernel, last.ridge, part, metric)
            last = Iterate(planned.kernel.with_metric(Mahalanobis.from_matrix(M)), planned.ridge)
    return last


def naive_judgment(plan, metric, table, parts):
    """What refits miss of each judged row: the metric of one part of the rows, coefficients of all others but one."""
    rows, misses, variances = [], [], []
    for learn, judge in parts:
        last = naive_kernel(plan, metric, table.take(learn))
        K = naive.kernel_matrix(last.kernel, table.X, table.X)
        missed, variance = naive.ridge_leave_one_out(K, table.y.numpy(), last.ridge, table.mass.numpy())
        rows += list(judge)
        misses += list(missed[judge])
        variances += list(variance[judge])
    order = np.argsort(rows)
    return np.sort(rows), np.array(misses)[order], np.array(variances)[order]


@pytest.mark.parametrize("folds", [((500, 5),), ((25, 3),), ()], ids=["five folds", "three folds", "halves"])
@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 5.0, 14)], ids=["plain", "weighted"])
@pytest.mark.parametrize("metric", PLANS)
def test_a_judgment_is_that_of_refits_under_a_metric_of_other_rows(metric, weights, folds, monkeypatch):
    monkeypatch.setattr(race_module, "FOLDS", folds)
    table = bent_rows(14, weights)
    plan = Plan(Setting(PLANS[metric][0].kernel, "none", metric, len(PLANS[metric]) - 1), PLANS[metric])
    (found,) = race(search(), table, [plan])
    rows, misses, variances = naive_judgment(PLANS[metric], metric, table, splits(14))
    assert found.plan is plan
    assert_array_equal(found.rows, rows)
    assert_array_equal(found.left_out.y, table.y[rows])
    assert_array_equal(found.left_out.weights, table.mass[rows])
    assert_allclose(found.left_out.y - found.left_out.mean, misses, atol=1e-6)
    assert_allclose(found.left_out.unit_variance, variances, rtol=1e-6)
    assert_allclose(found.scores, -((misses**2).mean(axis=1)), atol=1e-6)
    assert found.score == pytest.approx(np.average(found.scores, weights=found.left_out.weights))


def test_a_process_is_judged_by_densities():
    table = bent_rows()
    (found,) = race(search(FITTERS["evidence"]), table, [Plan(Setting(Laplace(1.1), "none"), PLANS["identity"])])
    _, misses, variances = naive_judgment(PLANS["identity"], "identity", table, splits(20))
    scale = np.mean(misses[:, 0] ** 2 / variances)
    assert_allclose(found.scores, norm.logpdf(misses[:, 0], 0.0, np.sqrt(scale * variances)), atol=1e-8)


def test_with_many_rows_bandwidth_and_ridge_are_tuned_on_the_part(monkeypatch):
    monkeypatch.setattr(race_module, "SCREEN_ROWS", 5)
    monkeypatch.setattr(race_module, "FOLDS", ())
    table, plan = bent_rows(40), Plan(Setting(Laplace(), "none"), [Iterate(Laplace(30.0), 30.0)])
    (found,) = race(search(), table, [plan])
    part = table.take(np.arange(20))
    last = tuned(Laplace(30.0), 30.0, [(part, part.warped("none"))], RidgeFitter(), Freedom())
    K = naive.kernel_matrix(last.kernel, table.X, table.X)
    misses, _ = naive.ridge_leave_one_out(K, table.y.numpy(), last.ridge, np.ones(40))
    assert last.ridge != 30.0
    assert_allclose(found.left_out.y - found.left_out.mean, misses[20:], atol=1e-8)


# ---- the screen --------------------------------------------------------------------------------------------


@fitters
def test_the_screen_tries_every_identity_and_learns_every_metric_that_suits(fitter):
    table = table_of(*smooth_rows(30))
    settings = [Setting(kernel, warp) for kernel in (Laplace(), Linear()) for warp in ("none", "rank")]
    metrics = [["ard", "full", "diagonal"], ["diagonal"], [], []]
    plans = screen(search(fitter), table, settings, metrics)
    tried = {(type(p.setting.kernel), p.setting.warp, p.setting.metric, p.setting.steps) for p in plans}
    expected = {(type(s.kernel), s.warp, "identity", 0) for s in settings}
    expected |= {(Laplace, "none", metric, step) for metric in ("full", "diagonal") for step in (1, 2)}
    expected |= {(Laplace, "none", "ard", 1), (Laplace, "rank", "diagonal", 1), (Laplace, "rank", "diagonal", 2)}
    assert tried == expected
    assert len(plans) == len(expected)
    assert [plan.cost for plan in plans] == sorted(plan.cost for plan in plans)
    for plan in plans:
        assert len(plan.iterates) == plan.setting.steps + 1
        last = plan.iterates[-1]
        K = last.kernel.matrix(table.warped(plan.setting.warp))
        assert plan.cost == pytest.approx(fitter.cost(K, table, last.ridge), abs=1e-8)


@pytest.mark.parametrize("metric", ["full", "diagonal"])
def test_steps_of_a_plan_follow_from_each_other(metric):
    table, settings = table_of(*smooth_rows(30)), [Setting(Laplace(), "none")]
    made = sorted(screen(search(n_iter=3), table, settings, [[metric]]), key=lambda plan: plan.setting.steps)
    assert [each.setting.steps for each in made] == [0, 1, 2, 3]
    assert [each.setting.metric for each in made] == ["identity", metric, metric, metric]
    for shorter, longer in pairwise(made):
        assert longer.iterates[:-1] == shorter.iterates
        expected = advanced(shorter.iterates[-1], table, table.warped("none"), metric)
        assert longer.iterates[-1].kernel.metric == expected.metric
    last = [plan for plan in screen(search(n_iter=3, last=True), table, settings, [[metric]]) if plan.setting.steps]
    assert [(plan.setting, plan.iterates) for plan in last] == [(made[-1].setting, made[-1].iterates)]
    (none,) = screen(search(n_iter=0), table, settings, [[metric]])
    assert none.setting.metric == "identity"


def test_length_scales_go_on_from_the_identity():
    table = table_of(*smooth_rows(30))
    plans = screen(search(ProcessFitter(by_evidence=True)), table, [Setting(Gaussian(), "none")], [["ard"]])
    (ard,), (identity,) = ([p for p in plans if p.setting.metric == metric] for metric in ("ard", "identity"))
    assert ard.setting.steps == 1
    assert ard.iterates[0] == identity.iterates[0]
    assert ard.cost < identity.cost - 0.05
    assert np.argmax(ard.iterates[-1].kernel.metric.importances()) == 0


@pytest.mark.parametrize("metric", ["diagonal", "full", "ard"])
def test_a_ridge_that_is_given_stays_in_every_step(metric):
    table = table_of(*smooth_rows(30))
    given = search(freedom=Freedom(ridge=False))
    plans = screen(given, table, [Setting(Gaussian(), "none")], [[metric]])
    assert {iterate.ridge for plan in plans for iterate in plan.iterates} == {given.ridge}


def test_a_screen_that_is_stopped_has_tried_the_first_setting():
    table = table_of(*smooth_rows(30))
    settings = [Setting(Laplace(), "none"), Setting(Gaussian(), "none")]
    (plan,) = screen(search()._replace(deadline=Stopped(1.0)), table, settings, [["full"], []])
    assert plan.setting == settings[0]
    plans = screen(search()._replace(deadline=Stopped(0.0)), table, settings, [["full"], []])
    assert len(plans) == 4


def plan(cost, kernel=SMOOTH, warp="none", metric="identity", steps=0):
    return Plan(Setting(kernel, warp, metric, steps), [Iterate(Gaussian(1.0), 0.1, cost)])


def test_every_kernel_may_learn_length_scales_whatever_it_cost_under_the_identity():
    """A line explains these rows best under the identity, and must not keep the others from learning."""
    X, _ = smooth_rows(40)
    table = table_of(X, X[:, 0] + 0.01 * numbers(40, seed=8))
    settings = [Setting(kernel, "none") for kernel in (Gaussian(), Laplace(), Linear())]
    plans = screen(search(), table, settings, [["ard"], ["ard"], []])
    assert {type(p.setting.kernel) for p in plans if p.setting.metric == "ard"} == {Gaussian, Laplace}


def test_gradient_outer_products_are_learned_for_the_best_starts(monkeypatch):
    monkeypatch.setattr("mercer.tabular_models.screen.LEADERS", 1)
    table = table_of(*smooth_rows(40))
    settings = [Setting(kernel, "none") for kernel in (Gaussian(0.01), Gaussian(2.0))]
    plans = screen(search(freedom=Freedom(bandwidth=False)), table, settings, [["full"], ["full"]])
    assert {p.setting.kernel.bandwidth for p in plans if p.setting.metric == "full"} == {2.0}


# ---- finalists ---------------------------------------------------------------------------------------------


def test_finalists_are_the_best_settings_with_every_metric_and_a_line_among_them():
    plans = [
        plan(1.0, metric="full", steps=2),
        plan(1.1, metric="full", steps=1),  # This is the first with fewer steps.
        plan(1.2, warp="log", metric="full", steps=1),
        plan(2.0, metric="ard", steps=1),
        plan(3.0),
        plan(4.0, warp="log"),
        plan(9.0, kernel=Linear()),
        plan(9.5, kernel=Linear(), warp="log"),
    ]
    assert [each.cost for each in finalists(plans, 1)] == [1.0, 2.0, 3.0, 9.0]
    assert [each.cost for each in finalists(plans, 5)] == [1.0, 1.2, 2.0, 3.0, 9.0]
    assert [each.cost for each in finalists(plans, 99)] == [1.0, 1.2, 2.0, 3.0, 4.0, 9.0, 9.5]
    assert finalists(plans[:1]) == plans[:1]


def test_the_best_of_one_more_kernel_reaches_the_final_whatever_its_place():
    others = [plan(5.0, kernel=Laplace(1.0)), plan(6.0, kernel=Laplace(1.0), warp="log"), plan(7.0, kernel=Matern32())]
    plans = [plan(1.0), plan(2.0, warp="log"), *others, plan(9.0, kernel=Linear())]
    assert [each.cost for each in finalists(plans, 1)] == [1.0, 5.0, 9.0]
    assert [each.cost for each in finalists(plans, 4)] == [1.0, 2.0, 5.0, 7.0, 9.0]
    # A kernel that is in the final for its metric alone has not shown its best.
    plans = [plan(1.0, metric="ard", steps=1), plan(2.0, kernel=Laplace(1.0), metric="ard", steps=1)]
    plans.append(plan(3.0, kernel=Laplace(1.0)))
    assert [each.cost for each in finalists(plans, 2)] == [1.0, 2.0, 3.0]


def test_settings_are_alike_that_differ_in_their_steps():
    one = Setting(Gaussian(1.0), "none", "full", 1)
    assert is_alike(one, one._replace(steps=3))
    for change in ({"warp": "log"}, {"metric": "diagonal"}, {"kernel": Laplace(1.0)}, {"kernel": Gaussian(2.0)}):
        assert not is_alike(one, one._replace(**change))


def test_a_race_has_the_best_first_and_those_far_behind_last_or_not_at_all():
    table = bent_rows(40)
    plans = [Plan(Setting(Laplace(b), "none"), [Iterate(Laplace(b), 0.1)]) for b in (0.01, 2.0, 1.5)]
    trials = race(search(), table, plans)
    assert [trial.score for trial in trials] == sorted((trial.score for trial in trials), reverse=True)
    assert {trials[0].plan.setting.kernel.bandwidth, trials[1].plan.setting.kernel.bandwidth} == {1.5, 2.0}
    assert all(trial.plan is plans[0] for trial in trials[2:])
    for trial in trials:
        assert_array_equal(trial.rows, np.arange(40))


def test_a_plan_that_is_far_behind_leaves_the_race():
    X = numbers(60, 2)
    table = table_of(X, 3 * X[:, 0] + 0.1 * numbers(60, seed=7))
    plans = [Plan(Setting(Gaussian(b), "none"), [Iterate(Gaussian(b), 0.1)]) for b in (1e-3, 4.0, 3.0)]
    assert {trial.plan.setting.kernel.bandwidth for trial in race(search(), table, plans)} == {3.0, 4.0}
    # The best never leaves, even if it is the only one.
    assert [trial.plan for trial in race(search(), table, plans[:1])] == plans[:1]


def test_a_race_that_is_stopped_has_judged_one_plan_for_every_row_it_returns():
    table = bent_rows(40)
    plans = [Plan(Setting(Laplace(b), "none"), [Iterate(Laplace(b), 0.1)]) for b in (1.5, 2.0)]
    (only,) = race(search()._replace(deadline=Stopped(1.0)), table, plans)
    assert only.plan is plans[0]
    assert len(only.rows) == len(only.scores) == len(only.left_out.y) > 0
    assert_array_equal(only.left_out.y, table.y[only.rows])


def trial(gain, metric, steps, noise=0.0):
    """A trial whose rows score `gain` above a common level, on average, give or take some noise."""
    deviations = numbers(100, seed=4)
    scores = numbers(100, seed=3) + gain + noise * (deviations - deviations.mean())
    empty = np.zeros((100, 1))
    return Trial(
        plan(0.0, metric=metric, steps=steps),
        LeftOut(empty, empty, np.ones(100), np.ones(100), empty),
        scores,
        np.arange(100),
        [],
    )


def test_the_simplest_of_those_that_the_best_does_not_clearly_beat():
    best, near, simple = trial(0.1, "full", 2), trial(0.05, "diagonal", 1, noise=1.0), trial(-5.0, "identity", 0)
    assert simplest_of_the_best([simple, near, best]) is near
    assert simplest_of_the_best([simple, best]) is best
    shorter = trial(0.1, "full", 1)
    assert simplest_of_the_best([best, shorter]) is shorter
    assert simplest_of_the_best([simple]) is simple


def test_history_is_plain_values():
    made = Plan(Setting(Gaussian(), "none", "full", 1), [Iterate(Gaussian(9.0), 1.0), Iterate(Gaussian(1.5), 0.1, 0.7)])
    expected = {
        "kernel": "Gaussian",
        "warp": "none",
        "metric": "full",
        "iterate": 1,
        "bandwidth": 1.5,
        "ridge": 0.1,
        "cost": 0.7,
        "score": None,
        "rows": 10,
    }
    assert history_entry(made, 10) == expected
    assert history_entry(made, 10, -2.0) == {**expected, "score": -2.0}
    unknown = made._replace(iterates=[Iterate(Gaussian(1.0) + Laplace(2.0), 0.1)])
    assert history_entry(unknown, 3)["bandwidth"] == [1.0, 2.0]
    assert history_entry(unknown, 3)["cost"] is None
    assert history_entry(made._replace(iterates=[Iterate(ProductLaplace(2.0), 0.1)]), 3)["bandwidth"] == 2.0
