"""Intervals of scores hold the score on all rows as often as they say; paired ones see what single ones cannot."""

import numpy as np
import pytest
from scipy.stats import genpareto
from sklearn.linear_model import LinearRegression
from sklearn.metrics import average_precision_score, roc_auc_score

from mercer.app.projects.baselines import Answers, baseline_answers, row_before
from mercer.app.projects.class_scores import ranking_scores, recall_by_class
from mercer.app.projects.metrics_of_draws import METRICS, scores_of_draws, sign_of
from mercer.app.projects.score_intervals import clusters_of, compare, score_intervals, stretches_of
from mercer.app.projects.table_scores import regression_scores, scores_of
from mercer.app.projects.table_split import SplitPlan
from mercer.app.projects.tail_mean import draws_of_mean, log_density_of_tail


def test_intervals_hold_the_score_on_all_rows():
    """100 made sets of rows left out, of which the score on all rows is known; the slow test below has more of them."""
    random, held = np.random.default_rng(0), {}
    shares = np.random.default_rng(1).beta(2.0, 2.0, 100_000)
    true = {
        "rmse": 1.0,
        "mae": np.sqrt(2.0 / np.pi),
        "r2": 0.8,
        "log_loss": -np.mean(shares * np.log(shares) + (1 - shares) * np.log(1 - shares)),
        "accuracy": np.maximum(shares, 1 - shares).mean(),
    }
    for seed in range(100):
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
        assert 0.82 <= np.mean(hits) <= 0.97, (name, np.mean(hits))  # 90 % within two and a half standard errors


ERRORS = {
    "normal": lambda random, n: random.normal(size=n),
    "Laplace": lambda random, n: random.laplace(size=n),
    "t with 5 degrees of freedom": lambda random, n: random.standard_t(5, size=n),
    "t with 4 degrees of freedom": lambda random, n: random.standard_t(4, size=n),
    "t with 3 degrees of freedom": lambda random, n: random.standard_t(3, size=n),
    "lognormal": lambda random, n: np.exp(random.normal(size=n)) - np.exp(0.5),
    "some five times as large": lambda random, n: np.where(random.random(n) < 0.05, 5, 1) * random.normal(size=n),
    "larger where the input is": None,
}


@pytest.mark.slow
def test_intervals_hold_the_true_score_of_fitted_tables():
    """Tables with all kinds of errors, 25 of each, a linear model, 200 rows left out; the truth from 500 000 new rows.

    Of single kinds 86 to 94 % is not reached by errors with three degrees of freedom: some 500 draws held 86 % (RMSE)
    and 90 % (MAE), where the studentized bootstrap alone holds 78 %. Their fourth moment is infinite.
    """
    held, random = {}, np.random.default_rng(0)
    for kind, draw in ERRORS.items():
        for _ in range(25):
            slopes = random.normal(size=3)

            def table(n, slopes=slopes, draw=draw):
                X = random.normal(size=(n, 3))
                errors = random.normal(size=n) * np.exp(X[:, 0]) if draw is None else draw(random, n)
                return X, X @ slopes + errors

            model = LinearRegression().fit(*table(300))
            X, y = table(200)
            found = score_intervals("regression", y, Answers("m", model.predict(X)), np.random.RandomState(0))
            X, y = table(500_000)
            errors = y - model.predict(X)
            true = {"rmse": np.sqrt(np.mean(errors**2)), "mae": np.abs(errors).mean()}
            for name in true:
                low, high = found[name]
                held.setdefault(name, []).append((kind, low <= true[name] <= high))
    for name in ("rmse", "mae"):
        assert len(held[name]) == 200
        assert 0.86 <= np.mean([hit for _, hit in held[name]]) <= 0.94, (name, held[name])


def test_the_tail_beyond_the_largest_loss_counts():
    """Draws of the mean are around it, reach further the heavier the tail, and scale with the losses."""
    random = np.random.default_rng(0)
    light, heavy = random.normal(size=300) ** 2, random.standard_t(3, size=300) ** 2
    reach = []
    for loss in (light, heavy):
        draws = draws_of_mean(loss, np.random.RandomState(0))
        assert np.quantile(draws, 0.05) < loss.mean() < np.quantile(draws, 0.95)
        reach.append(np.quantile(draws, 0.95) / loss.mean())
        np.testing.assert_allclose(draws_of_mean(2.0 * loss, np.random.RandomState(0)), 2.0 * draws)
    assert reach[0] < 1.35 < reach[1]
    assert np.all(draws_of_mean(np.ones(20), np.random.RandomState(0)) == 1.0)


def test_the_density_of_the_tail_is_the_generalized_pareto():
    z, xi, s = np.array([0.1, 0.7, 3.0]), np.array([-0.2, 0.0, 0.4]), np.array([1.0, 0.5, 2.0])
    found = log_density_of_tail(z, xi, s)
    for k in range(3):
        assert found[k] == pytest.approx(genpareto.logpdf(z, xi[k], scale=s[k]).sum())
    assert log_density_of_tail(np.array([6.0]), np.array([-0.2]), np.array([1.0]))[0] == -np.inf


@pytest.mark.parametrize("metric", [*METRICS["regression"], *METRICS["classification"]])
def test_scores_of_draws_are_those_of_the_rows_drawn(metric):
    """A draw is rows taken again: its weights give the score of these rows."""
    random = np.random.default_rng(0)
    rows = random.integers(0, 60, 60)
    weights = np.bincount(rows, minlength=60)[None] / 60
    if metric in METRICS["regression"]:
        y, answers = random.normal(size=60), Answers("m", random.normal(size=60))
        drawn = Answers("m", answers.predicted[rows])
        scores = regression_scores(y[rows], drawn.predicted)
    else:
        y, P = random.choice(["a", "b"], 60), random.dirichlet(np.ones(2), 60)
        classes = np.array(["a", "b"])
        answers = Answers("m", classes[P.argmax(axis=1)], None, P, classes)
        # Of two classes the rarer one is looked for, in all rows as in a draw.
        drawn = Answers("m", answers.predicted[rows], None, P[rows], classes)
        scores = scores_of("classification", y[rows], drawn)
        if metric in ("auc", "average_precision"):
            rare = min(classes, key=lambda label: np.sum(y == label))
            use = roc_auc_score if metric == "auc" else average_precision_score
            scores[metric] = use(y[rows] == rare, P[rows][:, list(classes).index(rare)])
    assert scores_of_draws(metric, y, answers, weights)[0] == pytest.approx(scores[metric])
    assert (sign_of(metric) == 1) == (metric in ("rmse", "mae", "log_loss"))


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
    found = compare("rmse", y, mine, [worst, other], np.random.RandomState(0))
    assert (found["baseline"], found["score"]) == ("other", "rmse")
    assert found["low"] > 0
    rmse = [np.sqrt(np.mean((y - answers.predicted) ** 2)) for answers in (mine, other)]
    assert found["better_by"] == pytest.approx(rmse[1] - rmse[0])
    low, high = score_intervals("regression", y, mine, np.random.RandomState(0))["rmse"]
    assert low < rmse[0] < rmse[1] < high
    equal = compare("rmse", y, mine, [Answers("same", 0.3 * y)], np.random.RandomState(0))
    assert equal["low"] == equal["high"] == equal["better_by"] == 0.0


def test_few_rows_have_no_interval():
    assert score_intervals("regression", np.arange(9.0), Answers("m", np.zeros(9)), np.random.RandomState(0)) == {}
    assert compare("rmse", np.arange(20.0), Answers("m", np.zeros(20)), [], np.random.RandomState(0)) == {}
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
