"""Effect curves recover functions that are known, with columns that go together too, within their bands."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression

import mercer
from mercer.explain import effect_curve, effect_curves, pair_effect, suggested_pairs


class Known(RegressorMixin, BaseEstimator):
    """A model whose function is known."""

    def __init__(self, function):
        self.function = function

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return self.function(np.asarray(X, dtype=float))


def friedman(X):
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def friedman_slopes(column, values, X):
    """The mean slope of Friedman's function at values of a column, over rows of the others, and 0 for an idle one."""
    other = X[:, 1 - column] if column < 2 else None
    if column < 2:
        return np.array([np.mean(10 * np.pi * other * np.cos(np.pi * value * other)) for value in values])
    return {2: 40 * (values - 0.5), 3: np.full(len(values), 10.0), 4: np.full(len(values), 5.0)}.get(
        column, np.zeros(len(values))
    )


def true_curve(column, curve, X):
    fine = np.linspace(curve.values[0], curve.values[-1], 2001)
    slopes = friedman_slopes(column, fine, X)
    path = np.concatenate([[0.0], np.cumsum(0.5 * (slopes[1:] + slopes[:-1]) * np.diff(fine))])
    return np.interp(curve.values, fine, path) - np.interp(X[:, column], fine, path).mean()


@pytest.fixture(scope="module")
def process():
    random = np.random.default_rng(0)
    X = random.uniform(size=(250, 7))
    y = friedman(X) + 0.5 * random.normal(size=len(X))
    model = mercer.GPRegressor("gaussian", "ard", warp="none", average=False, random_state=0)
    return model.fit(X, y), X


@pytest.mark.parametrize("column", range(7))
def test_friedman_functions_lie_in_their_bands(process, column):
    model, X = process
    curve = effect_curve(model, X, column, n_points=12, coverage=0.95, random_state=0)
    truth = true_curve(column, curve, X)
    assert curve.band == "function and rows"
    inside = (curve.lower <= truth) & (truth <= curve.upper)
    assert inside.mean() >= 0.75
    spread = max(np.ptp(truth), 3.0)
    assert np.abs(curve.effect - truth).max() < 0.15 * spread
    assert np.mean(curve.upper - curve.lower) < 0.6 * spread  # a band that holds everything says nothing


def test_columns_that_go_together_mislead_partial_dependence_alone():
    random = np.random.default_rng(0)
    X = random.uniform(size=(400, 1)) + 0.04 * random.normal(size=(400, 2))
    y = X[:, 0] + X[:, 1] ** 2

    def function(X):
        # The truth where there are rows, and nonsense where there are none.
        apart = np.abs(X[:, 0] - X[:, 1])
        return X[:, 0] + X[:, 1] ** 2 + np.where(apart > 0.3, 20 * (apart - 0.3) * X[:, 0], 0.0)

    model = Known(function).fit(X)
    assert np.allclose(model.predict(X), y)
    ale = effect_curve(model, X, 0, n_points=15)
    wrong = effect_curve(model, X, 0, n_points=15, kind="partial_dependence")
    truth = ale.values - X[:, 0].mean()
    assert np.abs(ale.effect - truth).max() < 0.01
    assert np.abs(wrong.effect - truth).max() > 0.5
    assert (np.abs(wrong.effect - truth) > wrong.upper - wrong.effect).any()


def test_a_process_on_correlated_columns_recovers_the_function_and_partial_dependence_does_not():
    random = np.random.default_rng(1)
    shared = random.uniform(size=(250, 1))
    X = np.hstack([shared + 0.08 * random.normal(size=(250, 2)), random.uniform(size=(250, 1))])
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 5 * X[:, 2] + 0.1 * random.normal(size=250)
    model = mercer.GPRegressor("gaussian", "ard", warp="none", average=False, random_state=0).fit(X, y)
    truth_model = Known(lambda X: 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 5 * X[:, 2]).fit(X)
    known = effect_curve(truth_model, X, 0, n_points=12)
    found = effect_curve(model, X, 0, n_points=12, coverage=0.95, random_state=0)
    inside = (found.lower <= known.effect) & (known.effect <= found.upper)
    assert inside.mean() >= 0.75
    dependence = effect_curve(model, X, 0, n_points=12, kind="partial_dependence", random_state=0)
    assert np.abs(dependence.effect - known.effect).max() > 2 * np.abs(found.effect - known.effect).max()


def test_friedman_with_columns_that_go_together():
    """Each of the five functions lies in its band; partial dependence is far off for the two that go together."""
    random = np.random.default_rng(2)
    together = np.clip(random.uniform(size=(250, 1)) + 0.08 * random.normal(size=(250, 2)), 0, 1)
    X = np.hstack([together, random.uniform(size=(250, 5))])
    y = friedman(X) + 0.5 * random.normal(size=250)
    model = mercer.GPRegressor("gaussian", "ard", warp="none", average=False, random_state=0).fit(X, y)
    truth = Known(friedman).fit(X)
    for column in range(5):
        known = effect_curve(truth, X, column, n_points=12).effect
        found = effect_curve(model, X, column, n_points=12, coverage=0.95, random_state=0)
        assert np.mean((found.lower <= known) & (known <= found.upper)) >= 0.9
        wrong = effect_curve(model, X, column, n_points=12, kind="partial_dependence", random_state=0).effect
        if column < 2:
            assert np.abs(wrong - known).max() > 4 * np.abs(found.effect - known).max()


def test_the_variance_of_the_band_is_that_of_the_process(process):
    model, X = process
    np.testing.assert_allclose(np.sqrt(np.diag(model.latent_cov(X[:9]))), model.latent_std(X[:9]), rtol=1e-6)
    wide = effect_curve(model, X, 0, n_points=4, coverage=0.99, random_state=0)
    narrow = effect_curve(model, X, 0, n_points=4, coverage=0.5, random_state=0)
    assert np.all(wide.upper - wide.lower > 2 * (narrow.upper - narrow.lower))


def test_categories_and_dates_keep_their_own_words():
    random = np.random.default_rng(0)
    n = 300
    city = random.choice(["Oslo", "Rome", "Lima"], size=n)
    day = pd.date_range("2024-01-01", periods=n, freq="D")
    table = pd.DataFrame({"city": city, "day": day, "x": random.normal(size=n)})
    table.loc[3, "city"] = None
    y = np.where(city == "Rome", 2.0, 0.0) + table["x"] + np.arange(n) / 100 + 0.1 * random.normal(size=n)
    model = mercer.tabular(mercer.GPRegressor("gaussian", "ard", warp="none", average=False, random_state=0))
    model.fit(table, y)
    city_curve, day_curve, x_curve = effect_curves(model, table, n_points=6, random_state=0)
    assert (city_curve.column, day_curve.column, x_curve.column) == ("category", "date", "number")
    by_level = dict(zip(map(str, city_curve.values), city_curve.effect, strict=True))
    assert by_level["Rome"] - by_level["Oslo"] == pytest.approx(2.0, abs=0.4)
    assert by_level["Rome"] - by_level["Lima"] == pytest.approx(2.0, abs=0.4)
    assert day_curve.labels[0] == "2024-01-01"
    assert day_curve.effect[-1] - day_curve.effect[0] == pytest.approx(3.0, abs=0.6)
    assert "Rome" in str(city_curve)


def test_probabilities_of_classes_have_curves_too():
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 2))
    y = np.where(X[:, 0] > 0, "up", "down")
    model = mercer.RFMClassifier("gaussian", "identity", warp="none", random_state=0).fit(X, y)
    curve = effect_curve(model, X, 0, n_points=8, output="up")
    assert curve.output == "probability of up"
    assert curve.effect[-1] - curve.effect[0] > 0.6
    assert curve.band == "rows"
    opposite = effect_curve(model, X, 0, n_points=8, output="down")
    np.testing.assert_allclose(curve.effect, -opposite.effect, atol=1e-9)


def test_pairs_that_act_together_are_found_and_sums_are_none():
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(400, 4))
    product = Known(lambda X: X[:, 0] * X[:, 1] + X[:, 2] ** 2 + X[:, 3]).fit(X)
    together = pair_effect(product, X, (0, 1), n_points=7)
    apart = pair_effect(product, X, (2, 3), n_points=7)
    assert together.strength == pytest.approx(1 / 3, rel=0.25)  # sqrt(E x^2 y^2) for uniform numbers
    assert apart.strength < 1e-9
    grid = np.outer(together.values[0].astype(float), together.values[1].astype(float))
    assert np.abs(together.effect - grid).max() < 0.2
    y = (X[:, 0] + X[:, 2]) ** 2
    model = mercer.RFMRegressor("gaussian", "full", warp="none", average=False, random_state=0).fit(X, y)
    assert suggested_pairs(model, 1)[0][:2] == ("x0", "x2")


def test_bad_input_is_named():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = LinearRegression().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="column='z'"):
        effect_curve(model, pd.DataFrame(X, columns=["a", "b"]), "z")
    with pytest.raises(ValueError, match="column=5"):
        effect_curve(model, X, 5)
    with pytest.raises(ValueError, match="two different values"):
        effect_curve(model, np.hstack([X[:, :1], np.ones((30, 1))]), 1)
    with pytest.raises(ValueError, match="kind='pdp'"):
        effect_curve(model, X, 0, kind="pdp")
    with pytest.raises(ValueError, match="two different columns"):
        pair_effect(model, X, (1, 1))


def test_a_column_that_is_mostly_zero_has_no_more_values_than_were_asked_for():
    random = np.random.default_rng(0)
    X = np.stack([np.where(random.random(400) < 0.03, random.exponential(size=400), 0.0), random.normal(size=400)], 1)
    assert len(np.unique(X[:, 0])) > 8
    model = LinearRegression().fit(X, X @ [1.0, 2.0])
    curve = effect_curve(model, X, 0, n_points=5)
    assert 3 <= len(curve.values) <= 5
    assert curve.values[0] == 0.0
    assert curve.values[-1] == X[:, 0].max()
