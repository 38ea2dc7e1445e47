"""Displays of reasons: waterfalls, effect curves, neighbors, concept profiles and coverage draw what was found."""

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.exceptions import InvalidParameterError
from mercer.explain import ConceptProfile, EffectCurve, coverage, expansion, neighbors
from mercer.kernels import Linear
from mercer.plots import (
    ConceptProfileDisplay,
    ContributionsDisplay,
    CoverageDisplay,
    EffectDisplay,
    NeighborsDisplay,
)
from tests.plots.test_plots_tables import LONG, assert_readable, close_figures, ticks  # noqa: F401

ONE = {"kernel": "gaussian", "metric": "diagonal", "warp": "none", "n_iter": 1, "random_state": 0}


def rows(n=50, d=3):
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(n, d)), columns=[f"c{k}" for k in range(d)])
    return X, X["c1"] ** 2 + 0.05 * random.normal(size=n)


def curve(name, column="number", n=6, scale=1.0):
    if column == "category":
        values = np.array([f"{LONG}{k}" for k in range(n)], dtype=object)
    elif column == "date":
        values = pd.date_range("2024-01-01", periods=n, freq="50D").to_numpy()
    else:
        values = np.linspace(0, 1e5, n)
    effect, counts = scale * np.linspace(-1, 1, n), np.full(n, 9)
    return EffectCurve(
        name, "ale", column, "prediction", values, effect, effect - 0.2, effect + 0.3, counts, "rows", 0.9
    )


def profile(n=4, name="class "):
    mean = np.linspace(2, -2, n)
    return ConceptProfile([f"{name}{k}" for k in range(n)], mean, np.where(mean > 1, 0.01, 0.8), 99)


def test_a_waterfall_goes_from_the_intercept_to_the_sum():
    X, y = rows()
    model = mercer.RFMRegressor(**ONE).fit(X, y)
    found = expansion(model, X)
    display = ContributionsDisplay.from_estimator(model, X, 7, n_rows=4)
    bars = display.ax_.patches
    own = found.contributions[7, :, 0]
    top = np.argsort(-np.abs(own))[:4]
    np.testing.assert_allclose([bar.get_width() for bar in bars[:4]], own[top])
    starts, ends = [bar.get_x() for bar in bars], [bar.get_x() + bar.get_width() for bar in bars]
    np.testing.assert_allclose(starts, [found.intercept[0], *ends[:-1]])
    np.testing.assert_allclose(ends[-1], model.predict(X.iloc[[7]])[0], atol=1e-8)
    assert ticks(display.ax_.yaxis) == ["begins at", *(f"row {found.rows[k]}" for k in top), "46 others", "sum"]
    low, high = display.ax_.get_xlim()
    assert low < min(*starts, *ends) <= max(*starts, *ends) < high
    assert ContributionsDisplay([1.0, -2.0], rows=["a", "b"]).plot().ax_.get_title() == "begins at 0, ends at -1"
    with pytest.raises(InvalidParameterError, match="contributions="):
        ContributionsDisplay(np.ones((2, 2)))
    with pytest.raises(InvalidParameterError, match="rows="):
        ContributionsDisplay([1.0], rows=[1, 2])
    with pytest.raises(InvalidParameterError, match="row=50"):
        ContributionsDisplay.from_expansion(found, 50)
    with pytest.raises(InvalidParameterError, match="found="):
        ContributionsDisplay.from_expansion([1.0])


def test_coverage_draws_the_three_orders():
    found = coverage(np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3)
    display = CoverageDisplay(found, "a map").plot()
    best, by_chance, ours, _ = display.ax_.lines
    for line, expected in ((best, found.curve_best), (by_chance, found.curve_random), (ours, found.curve)):
        np.testing.assert_allclose(line.get_ydata(), expected)
    assert ours.get_label().endswith(f": {found.kappa}")
    X, _ = rows()
    model = mercer.Nystrom(n_landmarks=20, random_state=0).fit(X)
    drawn = CoverageDisplay.from_estimator(model, np.arange(50) % 4).coverage
    assert drawn.kappa == coverage(model.coefficients_, (np.arange(50) % 4)[model.landmark_indices_]).kappa
    with pytest.raises(InvalidParameterError, match="coverage="):
        CoverageDisplay(3)
    with pytest.raises(InvalidParameterError, match="embedding="):
        CoverageDisplay.from_estimator(mercer.ColumnWarp().fit(X), [0])


def test_profiles_are_full_where_they_are_beyond_chance():
    display = ConceptProfileDisplay(profile(), "loop").plot()
    assert ticks(display.ax_.yaxis) == [f"class {k}" for k in range(4)]
    faces = [tuple(np.round(bar.get_facecolor(), 2)) for bar in display.ax_.patches]
    assert faces[0] != (1.0, 1.0, 1.0, 1.0)
    assert faces[1:] == [(1.0, 1.0, 1.0, 1.0)] * 3
    assert [text.get_text() for text in display.ax_.texts] == ["p 0.01", "p 0.8", "p 0.8", "p 0.8"]
    few = ConceptProfileDisplay(profile(10)).plot(max_groups=4)
    assert ticks(few.ax_.yaxis) == ["class 0", "class 1", "class 8", "class 9"]
    assert few.ax_.get_title() == "\n4 of 10 groups"
    X = np.random.default_rng(0).normal(size=(100, 4))
    model = mercer.Nystrom(Linear(), n_landmarks=40, random_state=0).fit(X)
    drawn = ConceptProfileDisplay.from_estimator(
        model, X, X[:, 0] > 0.5, X[:50] + 3.0 * np.eye(4)[0], X[50:], n_random=39, random_state=0
    )
    assert drawn.profile.significant() == ["True"]
    with pytest.raises(InvalidParameterError, match="profile="):
        ConceptProfileDisplay({})


def test_effects_are_drawn_the_strongest_first():
    curves = [curve("weak", scale=0.1), curve("city", "category", 4), curve("day", "date", scale=3.0)]
    display = EffectDisplay(curves, "a model").plot()
    assert [ax.get_title() for ax in display.axes_] == ["day", "city", "weak"]
    np.testing.assert_allclose(display.axes_[0].lines[1].get_ydata(), curves[2].effect)
    np.testing.assert_allclose(display.axes_[2].lines[1].get_xdata(), curves[0].values)
    assert display.figure_.get_suptitle() == "a model: bands of 90%"
    assert EffectDisplay(curves).plot(max_columns=1).figure_.get_suptitle() == "1 of 3 columns, bands of 90%"
    X, y = rows()
    drawn = EffectDisplay.from_estimator(mercer.RFMRegressor(**ONE).fit(X, y), X, ["c0", "c1"], n_points=5)
    assert drawn.axes_[0].get_title() == "c1"
    with pytest.raises(InvalidParameterError, match="curves="):
        EffectDisplay([])


def test_neighbors_follow_the_metric_and_columns_its_importances():
    X, y = rows(80, 4)
    model = mercer.RFMRegressor(**{**ONE, "n_iter": 3}).fit(X, y)
    found = neighbors(model, X, 5, 6)
    # Under the metric that was learned they agree in the column that counts, whatever the others say.
    apart = np.abs(X["c1"] - X["c1"][5])
    assert apart[found.rows].max() < np.sort(apart)[20]
    assert 5 not in found.rows
    assert np.all(np.diff(found.distances) >= 0)
    assert found.plain.max() > 5
    display = NeighborsDisplay.from_estimator(model, X, 5, n_rows=6)
    assert ticks(display.ax_.xaxis)[0] == "c1"
    standardized = (X - X.mean()) / X.std(ddof=0)
    np.testing.assert_allclose(display.ax_.lines[-1].get_ydata()[0], standardized["c1"][5])
    np.testing.assert_allclose(display.values[1, 0], standardized["c1"][found.rows[0]])
    with pytest.raises(InvalidParameterError, match="row=80"):
        neighbors(model, X, 80)
    clusters = mercer.SubspaceClustering(2, n_iter=0, random_state=0).fit(X.to_numpy())
    with pytest.raises(InvalidParameterError, match="model="):
        neighbors(clusters, X.to_numpy(), 1)
    with pytest.raises(InvalidParameterError, match="values="):
        NeighborsDisplay([1.0], ["a"], ["b"])


def test_the_nearest_rows_of_an_embedding_are_those_of_its_coordinates():
    X, _ = rows()
    model = mercer.Nystrom(n_landmarks=20, n_components=3, random_state=0).fit(X)
    E = model.transform(X)
    apart = np.linalg.norm(E - E[4], axis=1)
    np.testing.assert_array_equal(neighbors(model, X, 4, 3).rows, np.argsort(apart)[1:4])


@pytest.mark.parametrize("n", [2, 12])
def test_every_figure_is_readable(n):
    random = np.random.default_rng(0)
    names = [f"{LONG}{k}" for k in range(n)]
    drawn = [
        ContributionsDisplay(1e5 * random.normal(size=n), 3.0, np.array(names, dtype=object), LONG).plot(n_rows=7),
        CoverageDisplay(coverage(random.normal(size=(4 * n, 2)), np.repeat(np.arange(n), 4)), "a map").plot(),
        ConceptProfileDisplay(profile(n, LONG), LONG).plot(),
        EffectDisplay([curve(f"{LONG}{k}", ("number", "category", "date")[k % 3]) for k in range(n)], LONG).plot(),
        NeighborsDisplay(random.normal(size=(4, n)), names, ["row 1", *(f"row {k}, near" for k in range(3))]).plot(),
    ]
    for display in drawn:
        assert_readable(display.figure_)
