"""Tables of distinct rows, and the search over recipes: what is tried, what is kept, when a change is taken."""

import math
import time

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from mercer.kernels import Gaussian, Laplace
from mercer.selection import Candidate, stacking_weights
from mercer.tabular_models.gp_core import scored
from mercer.tabular_models.recursion import next_metric
from mercer.tabular_models.rfm_core import left_out
from mercer.tabular_models.search import (
    Recipe,
    climb,
    distinct_warps,
    finalists,
    history_entry,
    is_clearly_better,
    recipes,
    refine_warp,
    try_recipe,
)
from mercer.tabular_models.table import PRIOR_REPEATS, Clock
from tests.examples_of import numbers
from tests.tabular_models.test_gp_core import repeated_rows, table_of

# ---- tables ------------------------------------------------------------------------------------------------


def test_targets_are_centred_by_their_weighted_mean():
    X, Y, w = repeated_rows()
    table = table_of(X, Y, w)
    assert_allclose(table.center, np.average(Y, axis=0, weights=w))
    assert_allclose(table.weights @ table.y, 0.0, atol=1e-10)
    assert_allclose(table.observations.y, Y - table.center)
    assert_array_equal(table.X[table.observations.group], X)
    assert table_of(numbers(5, 2), numbers(5)).weights is None


def test_repeats_count_the_measurements_beyond_the_first_and_their_scatter():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [2.0], [2.0]])
    y = np.array([1.0, 2.0, 6.0, 5.0, 4.0, 4.0])
    further, scatter = table_of(X, y).repeats
    assert further == 2  # the row at 2 has one target twice: a copy
    assert_allclose(scatter, [4.0 + 1.0 + 9.0])
    _, weighted = table_of(X, y, np.array([1.0, 1.0, 2.0, 1.0, 1.0, 1.0])).repeats
    assert_allclose(weighted, [2.75**2 + 1.75**2 + 2 * 2.25**2])
    assert table_of(np.arange(6.0)[:, None], y).repeats is None
    assert table_of(np.repeat(X[3:5], 3, axis=0), np.repeat(y[3:5], 3)).repeats is None  # copies alone


@pytest.mark.parametrize("outputs", [1, 2])
def test_shared_noise_is_what_repeats_do_not_scatter(outputs):
    X, Y, w = repeated_rows(outputs=outputs)
    table, noise = table_of(X, Y, w), np.full(outputs, 0.4)
    equal = (X[:, None] == X[None]).all(axis=2)
    means = np.array([np.average(Y[copies], axis=0, weights=w[copies]) for copies in equal])
    scatter = np.mean((w[:, None] * (Y - means) ** 2).sum(axis=0) / 0.4)
    beyond = w.sum() - len(np.unique(X, axis=0))
    expected = 1 - (scatter + PRIOR_REPEATS) / (beyond + PRIOR_REPEATS)
    assert 0 < expected < 1
    assert table.shared_noise(noise) == pytest.approx(expected)
    assert table.shared_noise(noise / 1e4) == 0.0
    assert table.shared_noise(0 * noise) == 0.0
    assert table_of(X[:1], Y[:1]).shared_noise(noise) == 0.0
    copies = table_of(np.repeat(numbers(3, 2), 6, axis=0), np.repeat(numbers(3, outputs), 6, axis=0))
    assert copies.shared_noise(noise) == pytest.approx(1 - PRIOR_REPEATS / (15 + PRIOR_REPEATS))


def test_a_sample_keeps_the_centre_the_warps_and_every_observation_of_its_rows():
    X, Y, w = repeated_rows(60)
    table = table_of(np.exp(X), Y, w)
    part = table.sample(10, np.random.RandomState(0))
    assert len(part) == 10
    assert (np.diff(part.index) > 0).all()
    assert_array_equal(part.X, table.X[part.index])
    assert_array_equal(part.y, table.y[part.index])
    assert_array_equal(part.weights, table.weights[part.index])
    assert_array_equal(part.warped("log"), table.warped("log")[part.index])
    inside = np.isin(table.observations.group, part.index)
    assert_array_equal(part.observations.y, table.observations.y[inside])
    assert_array_equal(part.observations.weights, table.observations.weights[inside])
    assert_array_equal(part.X[part.observations.group], np.exp(X)[inside])
    assert_array_equal(
        part.sample(4, np.random.RandomState(1)).X, table.X[part.sample(4, np.random.RandomState(1)).index]
    )
    assert table.sample(len(table), np.random.RandomState(0)) is table


def test_a_clock_remembers_that_it_cut_something_short():
    free, short = Clock(None), Clock(1e-3)
    assert not free.is_over()
    time.sleep(2e-3)
    assert not short.bit
    assert short.is_over()
    assert short.bit
    assert not free.bit
    assert not Clock(60.0).is_over()


# ---- recipes -----------------------------------------------------------------------------------------------


def test_recipes_are_all_combinations_the_simplest_first():
    made = recipes([Gaussian(1.0), Laplace(1.0)], ["none", "log"], ["identity", "full"])
    assert len(made) == len({(type(r.kernel), r.warp, r.metric) for r in made}) == 8
    assert [r.metric for r in made] == ["identity"] * 4 + ["full"] * 4
    assert [r.warp for r in made[:4]] == ["none", "none", "log", "log"]
    assert made[0].named() == {"kernel": "Gaussian", "warp": "none", "metric": "identity"}
    assert made[0]._replace(warp=("log", "none")).named()["warp"] == "log,none"


def test_warps_that_bend_nothing_are_one():
    binary, mixed = (numbers(20, 2) > 0).astype(float), numbers(20, 2)
    assert distinct_warps(table_of(binary, numbers(20)), ["none", "log", "rank"]) == ["none"]
    assert distinct_warps(table_of(mixed, numbers(20)), ["none", "log", "rank"]) == ["none", "log", "rank"]
    assert distinct_warps(table_of(binary, numbers(20)), ["rank", "none"]) == ["rank"]


def fixed(kernel, table, warp):
    return scored(kernel, 0.1, table, warp)


def test_a_recipe_yields_every_iterate_or_one_fit():
    table = table_of(numbers(20, 2), numbers(20, 2)[:, 0] ** 2)
    options = {"n_iter": 2, "working_memory": 64.0, "clock": Clock(None)}
    recipe = Recipe(Laplace(), "rank", "full")
    iterates = try_recipe(recipe, table, fixed, **options)
    assert [c.about["iterate"] for c in iterates] == [0, 1, 2]
    assert all(c.about["recipe"] is recipe for c in iterates)
    assert iterates[0].kernel == Laplace().resolved(table.warped("rank"), 0)
    assert iterates[1].kernel.single_metric().kind == "full"
    assert len(try_recipe(recipe._replace(metric="ard"), table, fixed, **options)) == 1
    assert len(try_recipe(recipe._replace(metric="identity"), table, fixed, **options)) == 1
    (begun,) = try_recipe(recipe._replace(metric="ard"), table, fixed, start=Laplace(7.0), **options)
    assert begun.kernel == Laplace(7.0)
    options["clock"] = Clock(1e-9)
    assert len(try_recipe(recipe, table, fixed, **options)) == 1


def test_weights_reach_the_recursion():
    table = table_of(numbers(20, 2), numbers(20, 2)[:, 0] ** 2, np.linspace(0.1, 5.0, 20))
    options = {"n_iter": 1, "working_memory": 64.0, "clock": Clock(None)}
    first, second = try_recipe(Recipe(Laplace(1.0), "none", "full"), table, fixed, **options)
    Z, alpha = table.warped("none"), first.solution.alpha
    weighted, plain = (next_metric(first.kernel, Z, Z, alpha, "full", w).matrix() for w in (table.weights, None))
    assert_allclose(second.kernel.single_metric().matrix(), weighted, atol=1e-10)
    assert np.abs(weighted - plain).max() > 0.01


def candidate(score, recipe, iterate=0):
    return Candidate(Gaussian(1.0), 0.1, {"recipe": recipe, "iterate": iterate}, score)


def test_finalists_are_the_best_of_the_best_recipes_with_every_metric_among_them():
    a, b, c = (Recipe(Gaussian(1.0), warp, "identity") for warp in ("none", "log", "rank"))
    full = Recipe(Gaussian(1.0), "none", "full")
    tried = [candidate(s, r) for s, r in ((3.0, a), (5.0, a), (4.0, b), (4.5, c), (1.0, full), (2.0, full))]
    chosen = finalists(tried, 2)
    assert [(x.score, x.about["recipe"]) for x in chosen] == [(5.0, a), (4.5, c), (2.0, full)]
    assert [x.score for x in finalists(tried, 9)] == [5.0, 4.5, 4.0, 2.0]


@pytest.mark.parametrize("peak", [-3, -1, 0, 1, 4])
@pytest.mark.parametrize("step", [2.0, 3.0])
def test_climb_finds_the_peak_of_one_hill(peak, step):
    asked = []

    def evaluate(factor):
        asked.append(factor)
        return Candidate(None, factor, {}, -abs(math.log(factor, step) - peak))

    assert climb(evaluate, step).ridge == pytest.approx(step**peak)
    assert len(set(asked)) == len(asked) <= abs(peak) + 3
    assert climb(evaluate, step, most=2).ridge == pytest.approx(step ** max(-2, min(2, peak)))


def test_a_flat_hill_is_left_at_once():
    asked = []

    def evaluate(factor):
        asked.append(factor)
        return Candidate(None, factor, {}, 1.0)

    assert climb(evaluate).ridge == 1.0
    assert asked == [1.0, 2.0, 0.5]


def test_better_means_by_more_than_the_standard_error():
    table = table_of(numbers(50, 1), numbers(50), np.linspace(0.5, 2.0, 50))
    w = table.observations.weights
    noise = numbers(50, seed=3)
    noise = noise - np.average(noise, weights=w)
    error = math.sqrt(np.average(noise**2, weights=w) / 50)
    leader = Candidate(None, 1.0, {"row_scores": numbers(50, seed=4)})
    for gain, better in ((1.05 * error, True), (0.95 * error, False), (0.0, False), (-2 * error, False)):
        challenger = Candidate(None, 1.0, {"row_scores": leader.about["row_scores"] + noise + gain})
        assert is_clearly_better(challenger, leader, table) is better


def test_each_column_gets_the_warp_that_suits_it():
    random = np.random.default_rng(0)
    X = np.column_stack([np.exp(2 * random.normal(size=80)), random.normal(size=80), random.integers(0, 2, size=80)])
    table = table_of(X, np.sin(np.log(X[:, 0])) + X[:, 1])
    begun = fixed(Gaussian(1.5), table, "none")
    begun.about.update(recipe=Recipe(Gaussian(), "none", "identity"), iterate=2)
    asked = []

    def spy(kernel, table, warp):
        asked.append(warp)
        return fixed(kernel, table, warp)

    found = refine_warp(begun, table, ("none", "log", "rank"), spy, Clock(None))
    assert found.about["recipe"].warp[0] in ("log", "rank")
    assert found.about["recipe"].warp[1:] == ("none", "none")
    assert found.about["iterate"] == 2
    assert found.score > begun.score
    assert all(warp[2] == "none" for warp in asked)
    assert len(asked) == 4  # two other warps for each column that can be bent
    assert refine_warp(begun, table, ("none", "log", "rank"), spy, Clock(1e-9)) is begun
    assert refine_warp(begun, table, ("none",), spy, Clock(None)) is begun


def test_history_and_left_out_predictions():
    table = table_of(numbers(10, 2), numbers(10))
    made = scored(Gaussian(1.5), 0.1, table, "none")
    made.about.update(recipe=Recipe(Gaussian(), "none", "full"), iterate=1)
    assert history_entry(made, 10) == {
        "kernel": "Gaussian",
        "warp": "none",
        "metric": "full",
        "iterate": 1,
        "bandwidth": 1.5,
        "ridge": 0.1,
        "score": made.score,
        "rows": 10,
    }
    assert_allclose(left_out(made, table), (table.y - made.solution.residuals)[table.observations.group])
    assert history_entry(Candidate(Gaussian(1.0) + Laplace(2.0), 0.1, made.about, 0.0), 3)["bandwidth"] == [1.0, 2.0]


# ---- stacking ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 4])
def test_stacking_is_as_likely_as_the_optimum_of_scipy(k, weighted):
    log_densities = -0.5 * numbers(40, k) ** 2 - 700 * (np.arange(40) == 3)[:, None]  # one row is far from all
    w = np.linspace(0.2, 3.0, 40) if weighted else np.ones(40)

    def loss(p):
        return -np.average(np.log(np.exp(log_densities + 700 * (np.arange(40) == 3)[:, None]) @ p), weights=w)

    rule = {"type": "eq", "fun": lambda p: p.sum() - 1}
    expected = minimize(loss, np.full(k, 1 / k), bounds=[(0, 1)] * k, constraints=rule, tol=1e-12).x
    found = stacking_weights(log_densities, w if weighted else None, n_steps=5000)
    assert found.sum() == pytest.approx(1.0)
    assert loss(found) < loss(expected) + 1e-5
    assert_allclose(found, expected, atol=0.01)


def test_one_that_dominates_gets_all_and_equals_share_alike():
    log_densities = numbers(30, 1) + np.array([[-5.0, 0.0, -5.0]])
    assert stacking_weights(log_densities)[1] > 0.99
    assert_allclose(stacking_weights(numbers(30, 1) + np.zeros((1, 3))), 1 / 3)
    assert_array_equal(stacking_weights(numbers(30, 1)), [1.0])


def test_tables_live_in_the_precision_that_was_asked_for():
    table = table_of(numbers(5, 2), numbers(5))
    assert table.warped("none").dtype == table.y.dtype == torch.float64
    assert table.columns("log") is table.columns("log")
    assert table.columns(["log", "none"]) is table.columns(("log", "none"))
