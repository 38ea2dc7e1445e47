"""Intervals of scores hold the score on all rows as often as they say; paired ones see what single ones cannot."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from mercer.app.projects.baselines import Answers, baseline_answers, row_before
from mercer.app.projects.class_scores import ranking_scores, recall_by_class
from mercer.app.projects.score_intervals import clusters_of, compare_with_best, score_intervals, stretches_of
from mercer.app.projects.table_split import SplitPlan


def test_intervals_hold_the_score_on_all_rows():
    """200 made sets of rows left out, of which the score on all rows is known."""
    random, held = np.random.default_rng(0), {}
    shares = np.random.default_rng(1).beta(2.0, 2.0, 100_000)
    true = {
        "rmse": 1.0,
        "mae": np.sqrt(2.0 / np.pi),
        "r2": 0.8,
        "log_loss": -np.mean(shares * np.log(shares) + (1 - shares) * np.log(1 - shares)),
        "accuracy": np.maximum(shares, 1 - shares).mean(),
    }
    for seed in range(200):
        mean = 2.0 * random.normal(size=80)
        numbers = Answers("m", mean)
        found = score_intervals("regression", mean + random.normal(size=80), numbers, np.random.RandomState(seed))
        p = random.beta(2.0, 2.0, 80)
        classes = Answers("m", (p > 0.5).astype(int), None, np.stack([1 - p, p], axis=1), np.array([0, 1]))
        y = (random.random(80) < p).astype(int)
        found |= score_intervals("classification", y, classes, np.random.RandomState(seed))
        for name, (low, high) in found.items():
            held.setdefault(name, []).append(low <= true[name] <= high)
    assert set(held) == set(true)
    for name, hits in held.items():
        assert 0.86 <= np.mean(hits) <= 0.94, (name, np.mean(hits))


def test_rows_that_belong_together_are_drawn_together():
    """Ten rows of each group have one error: intervals of single rows would be a third as wide."""
    random = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 10)
    y = np.repeat(random.normal(size=20), 10)
    model = Answers("m", np.zeros(200))
    widths = [
        np.ptp(score_intervals("regression", y, model, np.random.RandomState(0), clusters)["rmse"])
        for clusters in (None, groups)
    ]
    assert widths[1] > 2.0 * widths[0]
    assert np.bincount(stretches_of(np.arange(1000.0)[::-1])).tolist() == [10] * 100
    assert stretches_of(np.array([3.0, 1.0, 2.0])).tolist() == [1, 0, 0]
    rows = np.array([1, 2, 199])
    assert clusters_of(SplitPlan("time", None, "", times=np.arange(200.0)), rows).tolist() == [0, 0, 1]
    assert clusters_of(SplitPlan("group", "g", "", groups=groups), rows).tolist() == [0, 0, 19]
    assert clusters_of(SplitPlan("random", None, ""), rows) is None


def test_models_are_compared_on_the_same_rows():
    """Rows differ much in how hard they are, and one model is a little better on all of them."""
    random = np.random.default_rng(0)
    y = random.standard_t(3, size=100)
    mine, other, worst = Answers("mine", 0.3 * y), Answers("other", 0.25 * y), Answers("worst", -y)
    found = compare_with_best("regression", y, mine, [worst, other], np.random.RandomState(0))
    assert (found["baseline"], found["score"]) == ("other", "rmse")
    assert found["low"] > 0
    rmse = [np.sqrt(np.mean((y - answers.predicted) ** 2)) for answers in (mine, other)]
    assert found["lower_by"] == pytest.approx(rmse[1] - rmse[0])
    low, high = score_intervals("regression", y, mine, np.random.RandomState(0))["rmse"]
    assert low < rmse[0] < rmse[1] < high
    equal = compare_with_best("regression", y, mine, [Answers("same", 0.3 * y)], np.random.RandomState(0))
    assert equal["low"] == equal["high"] == equal["lower_by"] == 0.0


def test_few_rows_have_no_interval():
    assert score_intervals("regression", np.arange(9.0), Answers("m", np.zeros(9)), np.random.RandomState(0)) == {}
    assert (
        compare_with_best("regression", np.arange(20.0), Answers("m", np.zeros(20)), [], np.random.RandomState(0)) == {}
    )
    constant = score_intervals("regression", np.ones(20), Answers("m", np.ones(20)), np.random.RandomState(0))
    assert constant == {"rmse": [0.0, 0.0], "mae": [0.0, 0.0]}


def test_scores_of_classes():
    random = np.random.default_rng(0)
    y = random.choice(list("abc"), 60, p=[0.6, 0.3, 0.1])
    P = random.dirichlet(np.ones(3), 60)
    scores = ranking_scores(y, P, np.array(list("abc")))
    assert scores["auc"] == pytest.approx(np.mean([roc_auc_score(y == c, P[:, k]) for k, c in enumerate("abc")]))
    two = np.where(y == "a", "a", "b")
    found = ranking_scores(two, P[:, :2], np.array(["a", "b"]))
    assert found["average_precision"] == pytest.approx(average_precision_score(two == "b", P[:, 1]))
    assert ranking_scores(np.array(["a"] * 5), P[:5, :2], np.array(["a", "b"])) == {
        "auc": None,
        "average_precision": None,
    }
    assert recall_by_class(np.array([1, 1, 2, 2]), np.array([1, 2, 2, 2])) == [
        {"class": "1", "rows": 2, "recall": 0.5},
        {"class": "2", "rows": 2, "recall": 1.0},
    ]


def test_the_row_before_is_a_baseline_in_time():
    y, times = np.array([5.0, 3.0, 4.0, 1.0]), np.array([4.0, 2.0, 3.0, 1.0])
    assert row_before(y, times, np.array([0, 2])).tolist() == [4.0, 3.0]
    X = np.arange(40.0)[:, None]
    names = [a.name for a in baseline_answers("regression", X, X[:, 0], X[:3], 0, before=np.ones(3))]
    assert names == ["mean of the target", "value of the row before", "ridge regression", "gradient-boosted trees"]
    classes = np.repeat(["a", "b"], 20)
    answers = baseline_answers("classification", X, classes, X[:2], 0, before=np.array(["b", "a"]))
    assert answers[1].name == "class of the row before"
    assert answers[1].predicted.tolist() == ["b", "a"]
    np.testing.assert_allclose(answers[1].probabilities.sum(axis=1), 1.0)
    assert answers[1].probabilities[0, 1] > 0.95
