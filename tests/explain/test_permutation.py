"""Permutation importances: against loops over rows, a known truth and its coverage, all kinds of models, bad input."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.svm import LinearSVC

import mercer
from mercer.exceptions import DataWarning, InvalidParameterError
from mercer.explain import permutation_importances
from mercer.explain.permutation import exchanged, mean_and_error
from tests.examples_of import numbers


class Linear:
    """f(x) = x^T beta, fitted by nobody."""

    def __init__(self, *beta):
        self.beta = np.array(beta)

    def predict(self, X):
        return np.asarray(X) @ self.beta


# ---- formulas ------------------------------------------------------------------------------------------------


def naive_importance(model, X, y, columns, order, n_repeats, weights):
    """The mean growth of the squared error and its error, a pair of rows at a time."""
    n, pairs = len(X), {}
    for i in range(n):
        for r in range(1, n_repeats + 1):
            borrower, lender = order[i], order[(i + r) % n]
            x = X[borrower].copy()
            x[columns] = X[lender, columns]
            after, before = ((y[borrower] - model.predict(row[None])[0]) ** 2 for row in (x, X[borrower]))
            pairs[borrower, lender] = (after - before, weights[borrower] * weights[lender])
    total = sum(w for _, w in pairs.values())
    mean = sum(w * growth for growth, w in pairs.values()) / total
    moves = []
    for row in range(n):
        own = [w * (growth - mean) for pair, (growth, w) in pairs.items() if row in pair]
        moves.append(n * sum(own) / total)
    return mean, np.sqrt(np.sum(np.square(moves)) / (n - 1) / n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_repeats", [1, 4])
def test_means_and_intervals_are_those_of_a_loop_over_pairs_of_rows(n_repeats, weighted):
    X, y, model = numbers(15, 4), numbers(15, seed=1), Linear(1.0, -2.0, 0.5, 0.0)
    weights = np.linspace(0.2, 2.0, 15) if weighted else None
    before = X.copy()
    found = permutation_importances(
        model,
        X,
        y,
        groups={"both": [0, "x2"]},
        n_repeats=n_repeats,
        coverage=0.8,
        sample_weight=weights,
        random_state=3,
    )
    order, w = np.random.RandomState(3).permutation(15), np.ones(15) if weights is None else weights
    assert found.names == ["both", "x1", "x3"]
    for k, columns in enumerate(([0, 2], [1], [3])):
        mean, error = naive_importance(model, X, y, columns, order, n_repeats, w)
        assert found.mean[k] == pytest.approx(mean)
        assert found.upper[k] - found.mean[k] == pytest.approx(stats.t.ppf(0.9, 14) * error)
        assert found.mean[k] - found.lower[k] == pytest.approx(stats.t.ppf(0.9, 14) * error)
    assert (found.lower[2], found.mean[2], found.upper[2]) == (0.0, 0.0, 0.0)
    assert found.loss == pytest.approx(np.average((y - model.predict(X)) ** 2, weights=w))
    assert_array_equal(X, before)


def test_every_row_borrows_from_every_other_where_repeats_are_many():
    """The complete U-statistic, which no order of rows changes; more repeats than rows are as many as there are."""
    X, y, model = numbers(9, 2), numbers(9, seed=1), Linear(1.0, 2.0)
    one, other = (permutation_importances(model, X, y, n_repeats=k, random_state=k) for k in (8, 100))
    assert_allclose(one.mean, other.mean)
    assert_allclose(one.upper, other.upper)
    errors = y - model.predict(X)
    growth = (errors[:, None] + X[:, 0][:, None] - X[:, 0][None, :]) ** 2 - errors[:, None] ** 2
    assert one.mean[0] == pytest.approx(growth.sum() / 72)


@pytest.mark.parametrize("noise", [0.3, 4.0])
def test_intervals_hold_the_truth_as_often_as_they_say(noise):
    """Of a linear function the squared error grows by 2 beta_j^2 var(x_j); rows as lenders count in the error."""
    random, model, truth = np.random.default_rng(0), Linear(1.0, 0.5, 0.0), [2.0, 0.5, 0.0]
    held, alone = np.zeros(3), 0
    for repeat in range(300):
        X = random.normal(size=(150, 3))
        y = model.predict(X) + noise * random.normal(size=150)
        found = permutation_importances(model, X, y, random_state=repeat)
        held += (found.lower <= truth) & (truth <= found.upper)
        # The spread of rows as borrowers alone.
        growth = np.array(
            [(y - model.predict(exchanged(X, [0], np.roll(np.arange(150), -r)))) ** 2 for r in range(1, 6)]
        )
        spread = (growth - (y - model.predict(X)) ** 2).mean(axis=0)
        reach = stats.t.ppf(0.95, 149) * spread.std(ddof=1) / np.sqrt(150)
        alone += abs(spread.mean() - 2.0) < reach
    assert held[2] == 300
    assert (held[:2] > 0.86 * 300).all()
    assert (held[:2] < 0.97 * 300).all()
    if noise < 1:
        assert alone < 0.75 * 300


def test_weights_are_repeated_rows_in_the_mean():
    X, y, model = numbers(12, 2), numbers(12, seed=1), Linear(1.0, 2.0)
    w = np.arange(12) % 3
    found = permutation_importances(model, X, y, sample_weight=w, n_repeats=11)
    rest = permutation_importances(model, X[w > 0], y[w > 0], sample_weight=w[w > 0], n_repeats=11)
    assert_allclose(found.mean, rest.mean)
    assert found.loss == pytest.approx(rest.loss)
    doubled = permutation_importances(model, X, y, sample_weight=np.full(12, 7.0), random_state=0)
    plain = permutation_importances(model, X, y, random_state=0)
    assert_allclose(doubled.upper, plain.upper)


def test_the_error_of_one_repeat_counts_neighbors():
    """A row that lends to the one before it and borrows from the one after: the error of a sum of dependent terms."""
    growth = numbers(1, 50)
    mean, error = mean_and_error(growth, np.ones((1, 50)))
    apart = growth[0] - growth.mean()
    assert mean == pytest.approx(growth.mean())
    assert error**2 * 49 * 50 == pytest.approx(2 * (apart @ apart) + 2 * (apart @ np.roll(apart, 1)))


# ---- models --------------------------------------------------------------------------------------------------


def table(n=160, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "idle": random.normal(size=n),
            "size": random.uniform(1, 4, size=n),
            "city": pd.Categorical(random.choice(["Graz", "Lund", "Oslo"], n)),
            "when": pd.to_datetime("2020-01-01") + pd.to_timedelta(random.integers(0, 900, n), unit="D"),
            "age": pd.array(random.integers(1, 90, n), dtype="Int64"),
        }
    )
    frame.loc[::11, "age"] = pd.NA
    return frame, 3.0 * frame["size"] + 2.0 * (frame["city"] == "Oslo") + 0.1 * random.normal(size=n)


QUICK = {"metric": "diagonal", "warp": "none", "random_state": 0}


@pytest.mark.parametrize("kind", ["gp", "rfm", "classes", "discriminant", "forest"])
def test_frames_of_any_kind_go_through_models_of_tables(kind):
    X, y = table()
    if kind not in ("gp", "rfm"):
        y = pd.Series(np.where(y > y.mean(), "much", "little"), dtype="category")
    estimator = {
        "gp": mercer.GPRegressor("matern32", **QUICK),
        "rfm": mercer.RFMRegressor("gaussian", **QUICK),
        "classes": mercer.RFMClassifier("gaussian", **QUICK),
        "discriminant": mercer.KernelDiscriminant(random_state=0),
        "forest": RandomForestClassifier(30, random_state=0),
    }[kind]
    model = mercer.tabular(estimator).fit(X[:100], y[:100])
    new, before = X[100:].assign(identifier="of no use"), X.copy()
    found = permutation_importances(model, new, y[100:], random_state=0)
    assert found.names == list(X.columns)
    assert found.names[np.argmax(found.mean)] == "size"
    assert found.lower[1] > 0
    assert (found.loss_name, found.n_rows) == ("squared_error" if kind in ("gp", "rfm") else "log_loss", 60)
    assert str(found).splitlines()[2].split()[0] == "size"
    pd.testing.assert_frame_equal(X, before)
    again = permutation_importances(model, new, y[100:], random_state=0)
    assert_array_equal(again.upper, found.upper)


def test_for_a_model_without_bias_they_are_twice_the_total_effects():
    random = np.random.default_rng(0)
    X = random.normal(size=(2400, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * X[:, 2] + 0.1 * random.normal(size=2400)
    model = mercer.GPRegressor("gaussian", **QUICK).fit(X[:400], y[:400])
    found = permutation_importances(model, X[400:], y[400:], random_state=0)
    assert_allclose(found.mean / found.mean.sum(), model.feature_importances_, atol=0.03)
    assert_array_equal(np.argsort(-found.mean), np.argsort(-model.feature_importances_))


def test_losses_are_those_of_scikit_learn():
    X, y = numbers(80, 3), np.array(["b", "a", "c"])[np.digitize(numbers(80, 3)[:, 0], [-0.5, 0.5])]
    model = LogisticRegression().fit(X[:50], y[:50])
    found = permutation_importances(model, X[50:], y[50:], random_state=0)
    assert found.loss == pytest.approx(sklearn_log_loss(y[50:], model.predict_proba(X[50:]), labels=model.classes_))
    wrong = permutation_importances(model, X[50:], y[50:], loss="zero_one_loss", random_state=0)
    assert wrong.loss == pytest.approx(1 - model.score(X[50:], y[50:]))
    without = permutation_importances(LinearSVC().fit(X[:50], y[:50]), X[50:], y[50:], random_state=0)
    assert without.loss_name == "zero_one_loss"
    targets = np.stack([X[:, 0], X[:, 1] + X[:, 2]], axis=1)
    several = permutation_importances(LinearRegression().fit(X, X[:, :2]), X, targets, random_state=0)
    assert several.loss == pytest.approx((X[:, 2] ** 2).mean() / 2)
    # A probability of 0 is not the end of all: trees that never err on what they have seen.
    trees = RandomForestClassifier(1, bootstrap=False, random_state=0).fit(X, y)
    assert np.isfinite(permutation_importances(trees, X, y, random_state=0).mean).all()


def test_a_loss_of_ones_own():
    X, y = table()
    X = X[["idle", "size"]]
    model = mercer.GPRegressor("matern32", **QUICK).fit(X[:80], y[:80])

    def minus_log_density(model, X, y):
        return -model.log_density(X, y)

    found = permutation_importances(model, X[80:], y[80:], loss=minus_log_density, random_state=0)
    assert found.loss == pytest.approx(-model.log_density(X[80:], y[80:]).mean())
    assert found.loss_name == "minus_log_density"
    assert found.lower[1] > 0


def test_columns_that_say_the_same_show_what_they_are_worth_together():
    X, y = numbers(200, 3), 2 * numbers(200, 3)[:, 0]
    X[:, 1] = X[:, 0]
    model = Linear(1.0, 1.0, 0.0)
    alone = permutation_importances(model, X, y, random_state=0)
    found = permutation_importances(model, X, y, groups={"twins": [0, 1], "one of them": ["x1"]}, random_state=0)
    assert found.names == ["twins", "one of them", "x2"]
    assert found.mean[1] == pytest.approx(alone.mean[1])
    assert found.mean[0] == pytest.approx(4 * alone.mean[0])


def test_columns_keep_their_types():
    X, _ = table()
    changed = exchanged(X, [2, 3, 4], np.arange(len(X))[::-1])
    assert (changed.dtypes == X.dtypes).all()
    pd.testing.assert_index_equal(changed.index, X.index)
    for name in ("city", "when", "age"):
        assert list(changed[name].astype(str)) == list(X[name].astype(str))[::-1]
    assert_array_equal(changed["size"], X["size"])


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("kind", ["exact", "landmarks", "discriminant"])
def test_rows_of_the_fit_are_warned_about(kind, wrapped):
    X, y = numbers(60, 3), numbers(60, 3)[:, 0] + 0.1 * numbers(60, seed=1)
    model = mercer.RFMRegressor("laplace", **QUICK, n_landmarks=15 if kind == "landmarks" else None)
    if kind == "discriminant":
        model, y = mercer.KernelDiscriminant(random_state=0), y > 0
    model = (mercer.tabular(model) if wrapped else model).fit(X[:40], y[:40])
    with pytest.warns(DataWarning, match="rows that the model was fitted on"):
        permutation_importances(model, X, y, random_state=0)
    permutation_importances(model, X[40:], y[40:], random_state=0)
    permutation_importances(model, X[35:], y[35:], random_state=0)


# ---- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": object()}, "model=.*with predict"),
        ({"loss": "rmse"}, "loss='rmse'.*squared_error"),
        ({"loss": "log_loss"}, "loss='log_loss'.*zero_one_loss"),
        ({"loss": lambda model, X, y: 0.0}, r"loss=\(\).*one loss a row"),
        ({"loss": lambda model, X, y: np.full(len(y), np.inf)}, "loss=inf.*finite"),
        ({"coverage": 1.0}, "coverage=1.0"),
        ({"coverage": 0.0}, "coverage=0.0"),
        ({"n_repeats": 0}, "n_repeats=0"),
        ({"X": np.ones(3)}, r"X=\(3,\).*\(n, d\)"),
        ({"X": np.ones((1, 2)), "y": [1.0]}, r"X=\(1, 2\).*2 at least"),
        ({"y": np.ones(5)}, r"y=\(5,\).*targets of the 6 rows"),
        ({"y": None}, r"y=\(\)"),
        ({"y": np.ones((6, 2))}, r"y=\(6, 2\).*of 1 targets"),
        ({"y": list("abcdef")}, "y=.*numbers"),
        ({"y": [1, 2, 3, 4, 5, np.nan]}, "missing values in 1 of 6"),
        ({"sample_weight": np.ones(5)}, "sample_weight=.*6 numbers"),
        ({"sample_weight": [-1, 1, 1, 1, 1, 1]}, "none negative"),
        ({"sample_weight": [0, 1, 0, 0, 0, 0]}, "two above 0"),
        ({"feature_names": ["a"]}, r"feature_names=\['a'\].*2 names"),
        ({"groups": [[0, 1]]}, r"groups=\[\[0, 1\]\].*dictionary"),
        ({"groups": {"a": "x0"}}, r"groups\['a'\]='x0'.*a list"),
        ({"groups": {"a": []}}, r"groups\['a'\]=\[\].*one at least"),
        ({"groups": {"a": ["x9"]}}, r"groups\['a'\]=\['x9'\].*not 'x9' \(nearest"),
        ({"groups": {"a": [2]}}, r"groups\['a'\]=\[2\].*not 2\."),
        ({"groups": {"a": [-1]}}, r"groups\['a'\]=\[-1\]"),
        ({"groups": {"x0": ["x1"]}}, "groups='x0'.*alone"),
    ],
)
def test_bad_input_is_named(options, message):
    given = {"model": Linear(1.0, 2.0), "X": numbers(6, 2), "y": numbers(6, seed=1)} | options
    with pytest.raises(ValueError, match=f"(?s){message}"):
        permutation_importances(**given)


def test_classes_that_the_model_does_not_know_are_named():
    X, y = numbers(40, 2), np.where(numbers(40, 2)[:, 0] > 0, "a", "b")
    model = LogisticRegression().fit(X, y)
    with pytest.raises(InvalidParameterError, match=r"y='c' .*\['a', 'b'\]"):
        permutation_importances(model, X, np.where(X[:, 1] > 1, "c", y))


def test_a_frame_that_lacks_a_column_is_named():
    X, y = table()
    model = mercer.tabular(LinearRegression()).fit(X, y)
    with pytest.raises(ValueError, match="X lacks 'size'"):
        permutation_importances(model, X.drop(columns="size"), y)
