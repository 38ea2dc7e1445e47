"""Metrics and displays for tables: what is drawn carries the numbers, fits the figure, and bad input is named."""

import math
from statistics import median

import matplotlib
import numpy as np
import pandas as pd
import pytest
from scipy import stats

matplotlib.use("agg")

import matplotlib.pyplot as plt

from mercer import Mahalanobis, Nystrom
from mercer.exceptions import DataWarning, InvalidParameterError
from mercer.explain import PermutationImportances
from mercer.kernels import Gaussian
from mercer.metrics import coverage, mean_ranks, negative_log_likelihood
from mercer.plots import (
    AgreementDisplay,
    CorrelationDisplay,
    ImportancesDisplay,
    IntervalDisplay,
    PermutationImportancesDisplay,
    ReliabilityDisplay,
    ScoresDisplay,
    normalized_scores,
)
from mercer.plots.agreement import correlate
from mercer.plots.labels import shorten

LONG = "a name that is by far too long for the axis of any figure, number "
COLUMNS = ["cement", "slag", "fly ash", "water", "plasticizer", "coarse", "fine", "age"]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def random():
    return np.random.default_rng(0)


def ticks(axis):
    return [tick.get_text() for tick in axis.get_ticklabels()]


def visible_texts(axes):
    """What can be read on one axes: names, ticks, labels, legend, title."""
    texts = [*axes.texts, axes.xaxis.label, axes.yaxis.label, axes.title]
    if axes.get_legend() is not None:
        texts += axes.get_legend().get_texts()
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        # Beyond the limits of an axis matplotlib keeps ticks that it does not draw.
        texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return [text for text in texts if text.get_text() and text.get_visible()]


def assert_readable(figure):
    """Nothing is cut off at the border of the figure, and no text lies over another."""
    figure.canvas.draw()
    frame, drawn = figure.bbox_inches, figure.get_tightbbox()
    assert min(drawn.x0, drawn.y0) > -0.01, "cut off at the left or below"
    assert drawn.x1 < frame.x1 + 0.01, "cut off at the right"
    assert drawn.y1 < frame.y1 + 0.01, "cut off above"
    texts = [text for axes in figure.axes for text in visible_texts(axes)]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    for i, (name, box) in enumerate(boxes):
        for other, beside in boxes[:i]:
            overlap = min(box.x1, beside.x1) - max(box.x0, beside.x0), min(box.y1, beside.y1) - max(box.y0, beside.y0)
            assert min(overlap) < 1.0, f"{name!r} lies over {other!r}"


# metrics


def test_negative_log_likelihood_is_that_of_scipy(random):
    y, mean, std = random.normal(size=30), random.normal(size=30), random.uniform(0.1, 3, size=30)
    naive = -sum(stats.norm(m, s).logpdf(t) for t, m, s in zip(y, mean, std, strict=True)) / 30
    assert negative_log_likelihood(y, mean, std) == pytest.approx(naive, rel=1e-12)
    assert negative_log_likelihood(list(y), pd.Series(mean), std) == pytest.approx(naive, rel=1e-12)
    assert type(negative_log_likelihood(y, mean, std)) is float


@pytest.mark.parametrize("level", [0.05, 0.5, 0.9, 0.99])
def test_coverage_counts_targets_between_the_quantiles(random, level):
    y, mean, std = random.normal(size=400), random.normal(size=400), random.uniform(0.1, 3, size=400)
    inside = 0
    for t, m, s in zip(y, mean, std, strict=True):
        low, high = stats.norm(m, s).interval(level)
        inside += low <= t <= high
    assert coverage(y, mean, std, level) == inside / 400
    assert coverage(y, mean, std) == coverage(y, mean, std, level=0.9)


def test_coverage_of_the_truth_is_the_level(random):
    mean, std = random.normal(size=20_000), random.uniform(0.1, 3, size=20_000)
    assert coverage(random.normal(mean, std), mean, std, 0.7) == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize("lower_is_better", [True, False])
def test_mean_ranks_are_counted_by_comparing(random, lower_is_better):
    scores = {m: {d: float(random.integers(4)) for d in "pqrst"} for m in "abcd"}
    ranks = mean_ranks(scores, lower_is_better=lower_is_better)
    assert list(ranks) == list("abcd")
    for m in "abcd":
        total = 0.0
        for d in "pqrst":
            mine, others = scores[m][d], [scores[o][d] for o in "abcd" if o != m]
            better = sum(other < mine if lower_is_better else other > mine for other in others)
            total += 1 + better + sum(other == mine for other in others) / 2
        assert ranks[m] == pytest.approx(total / 5)


@pytest.mark.parametrize("metric", [negative_log_likelihood, coverage])
@pytest.mark.parametrize(
    ("y", "mean", "std", "message"),
    [
        ([1.0, 2.0], [1.0], [1.0, 1.0], r"mean=\(1,\) .*shape of y, which is \(2,\)"),
        ([[1.0], [2.0]], [1.0, 2.0], [1.0, 1.0], r"mean=\(2,\) .*\(2, 1\)"),
        ([1.0, 2.0], [1.0, 2.0], [1.0], r"std=\(1,\)"),
        ([1.0, 2.0], [1.0, 2.0], [1.0, 0.0], r"std=0.0 .*above 0"),
        ([1.0, 2.0], [1.0, 2.0], [1.0, -2.0], r"std=-2.0 .*above 0"),
        ([1.0, 2.0], [1.0, np.nan], [1.0, 1.0], r"mean=nan .*finite.*\(1,\)"),
        ([1.0, np.inf], [1.0, 1.0], [1.0, 1.0], "y=inf"),
        ([], [], [], r"y=\(0,\) .*at least one"),
        (["a"], [1.0], [1.0], r"y=\['a'\] .*numbers"),
    ],
)
def test_metrics_name_what_is_wrong(metric, y, mean, std, message):
    with pytest.raises(InvalidParameterError, match=message):
        metric(y, mean, std)


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, "90", None])
def test_levels_lie_between_0_and_1(level):
    with pytest.raises(InvalidParameterError, match=r"level=.*above 0"):
        coverage([0.0], [0.0], [1.0], level)


@pytest.mark.parametrize("function", [mean_ranks, normalized_scores, ScoresDisplay])
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, r"scores=\{\} .*not empty"),
        ([1.0], r"scores=\[1.0\]"),
        ({"a": {}}, r"scores\['a'\]=\{\}"),
        ({"a": {"p": 1.0}, "b": {"q": 1.0}}, r"scores\['b'\]=\['q'\] .*data sets of 'a', \['p'\]"),
        ({"a": {"p": 1.0}, "b": {"p": np.nan}}, r"scores\['b'\]\['p'\]=nan"),
        ({"a": {"p": "good"}}, r"scores\['a'\]\['p'\]='good'"),
    ],
)
def test_scores_are_checked(function, scores, message):
    with pytest.raises(InvalidParameterError, match=message):
        function(scores)


# importances


def test_bars_are_sorted_shares_under_their_names():
    display = ImportancesDisplay([1.0, 6.0, 3.0], ["age", "height", "weight"], "a model").plot()
    assert [bar.get_width() for bar in display.ax_.patches] == pytest.approx([0.6, 0.3, 0.1])
    assert ticks(display.ax_.yaxis) == ["height", "weight", "age"]
    assert [text.get_text() for text in display.ax_.texts] == ["60.0%", "30.0%", "10.0%"]
    assert display.ax_.get_title() == "a model"
    top, bottom = display.ax_.get_ylim()[::-1]
    assert top < bottom, "the largest is at the top"


def test_inputs_beyond_the_first_are_one_bar():
    display = ImportancesDisplay(np.arange(1.0, 11.0)).plot(max_features=3)
    assert ticks(display.ax_.yaxis) == ["x9", "x8", "x7", "the other 7 together"]
    assert [bar.get_width() for bar in display.ax_.patches] == pytest.approx([10 / 55, 9 / 55, 8 / 55, 28 / 55])
    assert len(ImportancesDisplay(np.ones(3)).plot(max_features=3).ax_.patches) == 3


def test_importances_come_from_a_metric_a_kernel_or_trees():
    class Trees:
        feature_importances_ = np.array([25.0, 75.0])
        feature_names_in_ = np.array(["p", "q"], dtype=object)

    metric = Mahalanobis.from_weights([1.0, 3.0])
    frame = pd.DataFrame(np.eye(4, 2), columns=["p", "q"])
    model = Nystrom(kernel=Gaussian(1.0, metric=metric), n_landmarks=3, random_state=0).fit(frame)
    for display in (
        ImportancesDisplay.from_metric(metric, feature_names=["p", "q"]),
        ImportancesDisplay.from_estimator(model),
        ImportancesDisplay.from_estimator(Trees()),
    ):
        assert [bar.get_width() for bar in display.ax_.patches] == pytest.approx([0.75, 0.25])
        assert ticks(display.ax_.yaxis) == ["q", "p"]
    assert ImportancesDisplay.from_estimator(model).ax_.get_title() == "Nystrom"
    assert ImportancesDisplay.from_estimator(model, name="mine").ax_.get_title() == "mine"
    identity = ImportancesDisplay.from_metric(Mahalanobis(), feature_names=["p", "q", "r", "s"])
    np.testing.assert_allclose(identity.importances, 0.25)
    pair = AgreementDisplay.from_estimators({"kernel": model, "trees": Trees()})
    assert pair.feature_names == ["p", "q"]
    with pytest.raises(InvalidParameterError, match=r"model=.*kernel_ or feature_importances_"):
        ImportancesDisplay.from_estimator(object())
    with pytest.raises(InvalidParameterError, match="models="):
        AgreementDisplay.from_estimators([model])


def permuted(random, names):
    mean, reach = 1e4 * random.normal(size=len(names)), 1e3 * random.gamma(1.0, size=len(names))
    return PermutationImportances(list(names), mean, mean - reach, mean + reach, 2e4, "squared_error", 0.9, 50)


def test_permutation_importances_are_sorted_points_with_their_intervals(random):
    found = permuted(random, COLUMNS)
    display = PermutationImportancesDisplay(found, "a model").plot(max_features=5)
    first = np.argsort(-found.mean)[:5]
    assert ticks(display.ax_.yaxis) == [COLUMNS[k] for k in first]
    (bars,) = display.ax_.containers
    np.testing.assert_allclose(bars.lines[0].get_xdata(), found.mean[first])
    ends = np.array([segment[:, 0] for segment in bars.lines[2][0].get_segments()])
    np.testing.assert_allclose(ends, np.stack([found.lower[first], found.upper[first]], axis=1))
    assert display.ax_.get_title() == "a model\n5 of 8 inputs"
    assert display.ax_.get_xlabel() == "growth of squared_error when permuted,\n90% intervals"
    assert PermutationImportancesDisplay(found).plot().ax_.get_title() == ""


def test_permutation_importances_come_from_a_model_and_rows(random):
    X, y = random.normal(size=(40, 1)), random.normal(size=40)
    display = PermutationImportancesDisplay.from_estimator(Line(), X, y, feature_names=["hours"], random_state=0)
    assert ticks(display.ax_.yaxis) == ["hours"]
    assert display.ax_.get_title() == "Line"
    with pytest.raises(InvalidParameterError, match=r"importances=\[1.0\]"):
        PermutationImportancesDisplay([1.0])
    with pytest.raises(InvalidParameterError, match="max_features=0"):
        display.plot(max_features=0)


@pytest.mark.parametrize(
    ("importances", "message"),
    [
        ([1.0, -1.0], "none negative"),
        ([0.0, 0.0], "not all zero"),
        ([1.0, np.nan], "finite"),
        (np.ones((2, 2)), "vector"),
        (["a", "b"], "numbers"),
    ],
)
def test_importances_are_checked(importances, message):
    with pytest.raises(InvalidParameterError, match=f"(?s)importances=.*{message}"):
        ImportancesDisplay(importances)
    with pytest.raises(InvalidParameterError, match=rf"(?s)importances\['b'\]=.*{message}"):
        AgreementDisplay({"a": [1.0, 1.0], "b": importances})


def test_counts_of_names_models_and_axes_are_checked():
    with pytest.raises(InvalidParameterError, match=r"feature_names=\['a'\] .*2 names"):
        ImportancesDisplay([1.0, 2.0], ["a"])
    with pytest.raises(InvalidParameterError, match="max_features=0"):
        ImportancesDisplay([1.0, 2.0]).plot(max_features=0)
    with pytest.raises(InvalidParameterError, match="importances=.*two or three"):
        AgreementDisplay({"a": [1.0, 2.0]})
    with pytest.raises(InvalidParameterError, match=r"importances=\{'a': 2, 'b': 3\} .*same length"):
        AgreementDisplay({"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0]})
    with pytest.raises(InvalidParameterError, match="ax=.*as many Axes .*3"):
        AgreementDisplay({"a": [1, 2], "b": [1, 2], "c": [1, 2]}).plot(ax=plt.subplots(1, 2)[1])


@pytest.mark.parametrize("n_methods", [2, 3])
def test_agreement_has_a_panel_a_pair_with_both_correlations(random, n_methods):
    raw = {f"method {i}": random.gamma(0.5, size=8) for i in range(n_methods)}
    display = AgreementDisplay(raw, COLUMNS).plot()
    pairs = [(0, 1), (0, 2), (1, 2)][: len(display.axes_)]
    assert len(display.axes_) == {2: 1, 3: 3}[n_methods]
    assert display.ax_ is display.axes_[0]
    for axes, (i, j) in zip(display.axes_, pairs, strict=True):
        a, b = raw[f"method {i}"], raw[f"method {j}"]
        np.testing.assert_allclose(axes.collections[0].get_offsets(), np.stack([a / a.sum(), b / b.sum()], axis=1))
        pearson, spearman = stats.pearsonr(a, b)[0], stats.spearmanr(a, b)[0]
        assert axes.get_title() == f"Pearson {pearson:.2f}, Spearman {spearman:.2f}"
        assert (axes.get_xlabel(), axes.get_ylabel()) == (f"share in method {i}", f"share in method {j}")
        assert axes.get_xticks()[0] == 0


def test_correlations_are_those_of_scipy_and_undefined_for_constants(random):
    a, b = random.integers(5, size=12), random.integers(5, size=12)  # with ties
    assert correlate(a, b) == pytest.approx((stats.pearsonr(a, b)[0], stats.spearmanr(a, b)[0]))
    almost = 1 + 1e-15 * random.integers(3, size=12)
    for constant in (np.ones(12), almost):
        assert all(math.isnan(value) for value in [*correlate(a, constant), *correlate(constant, a)])
    display = AgreementDisplay({"a": [1, 2, 3], "identity": [1, 1, 1]}).plot()
    assert display.ax_.get_title() == "Pearson undefined, Spearman undefined"


def test_names_stand_at_their_points_the_most_important_first(random):
    importances = {"a": random.gamma(0.5, size=40), "b": random.gamma(0.5, size=40)}
    display = AgreementDisplay(importances).plot(max_names=6)
    points = np.stack(list(display.importances.values()), axis=1)
    foremost = {f"x{i}" for i in np.argsort(-points.max(axis=1))[:6]}
    written = {text.get_text(): text.xy for text in display.ax_.texts}
    assert set(written) <= foremost
    assert len(written) >= 4
    for name, place in written.items():
        np.testing.assert_allclose(place, points[int(name[1:])])
    assert not AgreementDisplay(importances).plot(max_names=0).ax_.texts


def test_names_lie_over_no_point_in_the_figure_as_it_is_drawn(random):
    _, (ax, beside) = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
    beside.set_yticks([0, 1], ["takes half of the room for itself", "and the layout gives it"])
    importances = {name: random.gamma(0.5, size=40) for name in "ab"}
    display = AgreementDisplay(importances, [f"input {i}" for i in range(40)]).plot(ax, max_names=40)
    display.figure_.canvas.draw()
    pixels = ax.transData.transform(ax.collections[0].get_offsets())
    assert len(ax.texts) >= 5
    assert not any(text.get_window_extent().count_contains(pixels) for text in ax.texts)


def test_names_without_room_are_left_out():
    """Forty inputs at one place: what is written stands around it."""
    display = AgreementDisplay({"a": np.ones(40), "b": np.ones(40)}, [f"input number {i}" for i in range(40)])
    display.plot(max_names=40)
    assert 1 <= len(display.ax_.texts) < 40
    assert_readable(display.figure_)


def test_long_names_lose_their_middle():
    assert shorten("short") == "short"
    assert shorten("abcdefghij", 7) == "abc…hij"
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert len(shorten(LONG)) == 28
    assert shorten(LONG + "1") != shorten(LONG + "2")


# correlations over data sets


def boxes_of(display):
    """(left, right, middle height) of every box: quartiles and the place in the rows."""
    found = []
    for patch in display.ax_.patches:
        corners = patch.get_path().vertices
        found.append((corners[:, 0].min(), corners[:, 0].max(), (corners[:, 1].min() + corners[:, 1].max()) / 2))
    return found


def test_boxes_span_the_quartiles_in_the_row_of_the_data_set(random):
    pairs = [("RFM", "ARD"), "RFM and its diagonal"]
    values = {d: {p: random.uniform(0.1, 1, size=11) for p in pairs} for d in ("wine", "power", "yacht")}
    del values["power"][pairs[0]]
    display = CorrelationDisplay(values, "Spearman correlation").plot()
    expected = {
        (round(np.quantile(v, 0.25), 9), round(np.quantile(v, 0.75), 9)): (row, pairs.index(pair))
        for row, of_pairs in enumerate(values.values())
        for pair, v in of_pairs.items()
    }
    boxes = boxes_of(display)
    assert len(boxes) == len(expected) == 5
    for left, right, height in boxes:
        row, k = expected[round(left, 9), round(right, 9)]
        assert height == pytest.approx(row + (-0.2, 0.2)[k])
    assert ticks(display.ax_.yaxis) == ["wine", "power", "yacht"]
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["RFM and ARD", pairs[1]]
    assert display.ax_.get_xlabel() == "Spearman correlation of the importances"
    points = sorted(x for line in display.ax_.lines if line.get_marker() == "o" for x in line.get_xdata())
    assert points == pytest.approx(sorted(x for of_pairs in values.values() for v in of_pairs.values() for x in v))
    bottom, top = display.ax_.get_ylim()
    assert bottom > top, "the first data set is at the top"


@pytest.mark.parametrize("kind", ["spearman", "pearson"])
def test_correlations_from_importances_go_split_by_split(random, kind):
    importances = {d: {m: random.gamma(0.5, size=(4, 6)) for m in "abc"} for d in ("wine", "power")}
    display = CorrelationDisplay.from_importances(importances, kind=kind)
    naive = {"spearman": stats.spearmanr, "pearson": stats.pearsonr}[kind]
    for d, of_methods in importances.items():
        assert list(display.correlations[d]) == [("a", "b"), ("a", "c"), ("b", "c")]
        for (p, q), values in display.correlations[d].items():
            assert values == pytest.approx([naive(of_methods[p][i], of_methods[q][i])[0] for i in range(4)])
    assert display.ax_.get_xlabel().startswith(kind.capitalize())


def test_undefined_correlations_are_left_out_and_told():
    with pytest.warns(DataWarning, match="2 of 3 correlations of a and b on wine are undefined"):
        display = CorrelationDisplay({"wine": {("a", "b"): [np.nan, 0.5, np.nan]}})
    assert display.correlations["wine"]["a", "b"].tolist() == [0.5]
    with pytest.warns(DataWarning):
        display = CorrelationDisplay({"wine": {"p": [np.nan], "q": [0.5]}, "power": {"q": [0.25]}}).plot()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["q"]
    with pytest.warns(DataWarning), pytest.raises(InvalidParameterError, match="not NaN"):
        CorrelationDisplay({"wine": {("a", "b"): [np.nan]}})


@pytest.mark.parametrize(
    ("correlations", "message"),
    [
        ({}, "not empty"),
        ({"wine": {}}, r"correlations\['wine'\]=\{\}"),
        ({"wine": {("a", "b"): [0.5, 1.2]}}, r"correlations\['wine'\]\[\('a', 'b'\)\]=\[0.5, 1.2\] .*-1 to 1"),
        ({"wine": {("a", "b"): []}}, r"\[\]"),
        ({"wine": {("a", "b", "c"): [0.5]}}, "a pair of .*two names"),
        ({"wine": {"a": ["high"]}}, "numbers"),
    ],
)
def test_correlations_are_checked(correlations, message):
    with pytest.raises(InvalidParameterError, match=message):
        CorrelationDisplay(correlations)


@pytest.mark.parametrize(
    ("importances", "message"),
    [
        ([1.0], r"importances=\[1.0\]"),
        ({"wine": {"a": np.ones((2, 3))}}, "two methods"),
        (
            {"wine": {"a": np.ones((2, 3)), "b": np.ones((2, 4))}},
            r"importances\['wine'\]=\{'a': \(2, 3\), 'b': \(2, 4\)",
        ),
        ({"wine": {"a": np.ones(3), "b": np.ones(3)}}, r"\(n_splits, d\)"),
        ({"wine": {"a": np.ones((2, 3)), "b": -np.ones((2, 3))}}, r"importances\['wine'\]\['b'\]=.*none negative"),
    ],
)
def test_importances_of_splits_are_checked(importances, message):
    with pytest.raises(InvalidParameterError, match=message):
        CorrelationDisplay.from_importances(importances)
    with pytest.raises(InvalidParameterError, match="kind='kendall' .*'pearson', 'spearman'"):
        CorrelationDisplay.from_importances(importances, kind="kendall")


# scores


def some_scores(random, methods, n_data_sets=3, n_seeds=5):
    return {
        method: {f"set {d}": 10.0**d * random.normal(i, 0.3, size=n_seeds) for d in range(n_data_sets)}
        for i, method in enumerate(methods)
    }


def test_normalized_scores_equal_their_naive_twin(random):
    scores = some_scores(random, "abc")
    scores["b"]["set 1"] = scores["b"]["set 1"][:2]  # another number of seeds
    before = {m: {d: list(v) for d, v in of.items()} for m, of in scores.items()}
    normalized = normalized_scores(scores)
    for d in ("set 0", "set 1", "set 2"):
        everything = [value for m in "abc" for value in before[m][d]]
        low, high = min(everything), max(everything)
        for m in "abc":
            assert normalized[m][d].tolist() == pytest.approx([(v - low) / (high - low) for v in before[m][d]])
            assert scores[m][d].tolist() == before[m][d], "the caller's scores are as they were"
    pooled = np.concatenate([v for of in normalized.values() for v in of.values()])
    assert (pooled.min(), pooled.max()) == (0.0, 1.0)
    assert normalized_scores({"a": {"p": [2.0, 2.0]}})["a"]["p"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("lower_is_better", [True, False])
def test_violins_are_sorted_by_median_from_the_top(random, lower_is_better):
    scores = some_scores(random, ["second", "third", "first"])
    scores = {"second": scores["third"], "third": scores["first"], "first": scores["second"]}
    display = ScoresDisplay.from_scores(scores, score_name="RMSE", lower_is_better=lower_is_better)
    order = ["first", "second", "third"] if lower_is_better else ["third", "second", "first"]
    assert ticks(display.ax_.yaxis) == order
    bottom, top = display.ax_.get_ylim()
    assert bottom > top
    pooled = {m: [v for values in of.values() for v in values] for m, of in display.normalized.items()}
    medians = [line.get_xdata()[0] for line in display.ax_.lines if line.get_linewidth() == 2.0]
    assert medians == pytest.approx([median(pooled[m]) for m in order])
    for place, (body, box) in enumerate(zip(display.ax_.collections, boxes_of(display), strict=True)):
        corners = body.get_paths()[0].vertices
        values = pooled[order[place]]
        assert (corners[:, 0].min(), corners[:, 0].max()) == pytest.approx((min(values), max(values)))
        assert corners[:, 1].mean() == pytest.approx(place, abs=0.02)
        assert box == pytest.approx((np.quantile(values, 0.25), np.quantile(values, 0.75), place))
    assert display.ax_.get_xlabel() == f"RMSE, normalized ({'lower' if lower_is_better else 'higher'} is better)"
    assert display.ax_.get_title() == "3 data sets, 15 runs per method"


def test_one_very_bad_run_does_not_move_a_method_down():
    scores = {"steady": {"wine": [0.3, 0.3, 0.3]}, "mostly better": {"wine": [0.0, 0.0, 1.0]}}
    assert ticks(ScoresDisplay(scores).plot().ax_.yaxis) == ["mostly better", "steady"]


def test_one_method_with_one_score_is_drawn():
    display = ScoresDisplay({"a": {"p": 2.0}}).plot()
    assert display.ax_.get_title() == "1 data set, 1 run per method"


# reliability


def test_reliability_is_coverage_against_level(random):
    y, mean, std = random.normal(size=80), np.zeros(80), np.full(80, 0.7)
    display = ReliabilityDisplay.from_predictions(y, mean, std, levels=[0.9, 0.2, 0.5], name="narrow")
    np.testing.assert_allclose(display.line_.get_xdata(), [0.2, 0.5, 0.9])
    observed = [np.mean(np.abs(y) <= stats.norm.ppf((1 + p) / 2) * 0.7) for p in (0.2, 0.5, 0.9)]
    np.testing.assert_allclose(display.line_.get_ydata(), observed)
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == [f"{observed[-1]:.1%}  narrow", "ideal", "95% range for 80 rows"]
    diagonal = next(line for line in display.ax_.lines if line.get_label() == "ideal")
    np.testing.assert_allclose(diagonal.get_xydata(), [[0, 0], [1, 1]])
    assert len(ReliabilityDisplay.from_predictions(y, mean, std).levels) == 19


def test_the_band_holds_what_chance_does():
    """The share of n rows inside a right interval of 60 % is Binomial(n, 0.6) / n: the band has 95 % of it."""
    display = ReliabilityDisplay.from_predictions(np.zeros(50), np.zeros(50), np.ones(50))
    corners = display.ax_.collections[0].get_paths()[0].vertices
    at = corners[np.isclose(corners[:, 0], 0.6, atol=1e-6), 1]
    low, high = round(50 * at.min()), round(50 * at.max())
    mass = [math.comb(50, k) * 0.6**k * 0.4 ** (50 - k) for k in range(51)]
    assert sum(mass[low : high + 1]) >= 0.95
    assert sum(mass[:low]) < 0.025 < sum(mass[: low + 1])
    assert sum(mass[high + 1 :]) < 0.025 < sum(mass[high:])


def test_models_share_axes_band_and_diagonal(random):
    y, zeros = random.normal(size=60), np.zeros(60)
    first = ReliabilityDisplay.from_predictions(y, zeros, np.ones(60), name="a")
    second = ReliabilityDisplay.from_predictions(y, zeros, np.full(60, 2.0), name="b", ax=first.ax_)
    assert second.ax_ is first.ax_
    assert len(first.ax_.lines) == 3
    assert len(first.ax_.collections) == 1
    assert first.line_.get_color() != second.line_.get_color()
    ReliabilityDisplay.from_predictions(y[:30], zeros[:30], np.ones(30), name="c", ax=first.ax_)
    labels = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert [label.split()[-1] for label in labels[:3]] == ["a", "b", "c"]
    assert labels[3:] == ["ideal", "95% range for 60 rows", "95% range for 30 rows"]


class Line:
    """A regressor: 2 x + 1 of the first column, and a spread that grows with it."""

    def predict(self, X, return_std=False):
        if isinstance(X, pd.DataFrame):
            assert list(X.columns) == ["hours"]
        x = np.asarray(X)[:, 0]
        return (2 * x + 1, 1 + np.abs(x)) if return_std else 2 * x + 1


class NoSpread:
    def predict(self, X, return_std=False):
        return np.zeros(len(X))


class NoOption:
    def predict(self, X):
        return np.zeros(len(X))


def test_reliability_of_an_estimator_is_that_of_its_predictions(random):
    X, y = random.normal(size=(40, 3)), random.normal(size=40)
    display = ReliabilityDisplay.from_estimator(Line(), X, y)
    same = ReliabilityDisplay.from_predictions(y, *Line().predict(X, return_std=True))
    np.testing.assert_array_equal(display.observed, same.observed)
    assert display.name == "Line"
    assert ReliabilityDisplay.from_estimator(Line(), X, y, name="mine").name == "mine"


@pytest.mark.parametrize("display", [ReliabilityDisplay, IntervalDisplay])
def test_predictions_are_checked(display):
    for model in (NoSpread(), NoOption(), object()):
        with pytest.raises(InvalidParameterError, match="model=.*return_std=True"):
            display.from_estimator(model, np.zeros((3, 2)), np.zeros(3))
    with pytest.raises(InvalidParameterError, match=r"mean=\(2,\) .*shape of y_true"):
        display.from_predictions([1.0], [1.0, 2.0], [1.0, 1.0])
    with pytest.raises(InvalidParameterError, match="y_true=nan"):
        display.from_predictions([np.nan], [1.0], [1.0])
    with pytest.raises(InvalidParameterError, match="std=0.0"):
        display.from_predictions([1.0], [1.0], [0.0])


def test_levels_and_inputs_are_checked():
    ones = np.ones(3)
    with pytest.raises(InvalidParameterError, match=r"level=.*1.0"):
        ReliabilityDisplay.from_predictions(ones, ones, ones, levels=[0.5, 1.0])
    with pytest.raises(InvalidParameterError, match="level=0 "):
        IntervalDisplay.from_predictions(ones, ones, ones, level=0)
    with pytest.raises(InvalidParameterError, match=r"x=.*shape of y_true, \(3,\)"):
        IntervalDisplay(ones, ones, ones, x=np.ones(2))
    with pytest.raises(InvalidParameterError, match="curve=.*x is not given"):
        IntervalDisplay(ones, ones, ones, curve=IntervalDisplay(ones, ones, ones, x=ones).curve)
    with pytest.raises(InvalidParameterError, match=r"y_true=\(3, 1\)"):
        IntervalDisplay(ones[:, None], ones[:, None], ones[:, None])
    with pytest.raises(InvalidParameterError, match="max_rows=0"):
        IntervalDisplay(ones, ones, ones).plot(max_rows=0)
    with pytest.raises(ValueError, match=r"interval=\(3,\) is not allowed.*the two ends for each of 3 rows"):
        IntervalDisplay(ones, ones, ones, interval=ones)


def test_intervals_that_are_not_gaussian_are_drawn_from_end_to_end():
    y, mean, std = np.array([1.0, 2.0, 3.0]), np.array([1.5, 2.5, 2.0]), np.ones(3)
    ends = np.array([[0.5, 4.0], [2.2, 9.0], [1.0, 3.0]])
    display = IntervalDisplay.from_predictions(y, mean, std, interval=ends)
    np.testing.assert_array_equal(display.outside(), [False, True, False])
    drawn = sorted(bar[2:] for bars in error_bars(display) for bar in bars)
    np.testing.assert_allclose(drawn, ends[np.argsort(ends[:, 0])])


# intervals


def error_bars(display):
    """(observed, predicted, lower end, upper end) of every row, those that hold and those that miss."""
    found = []
    for container in display.ax_.containers:
        line, _, (bars,) = container.lines
        ends = [segment[:, 1] for segment in bars.get_segments()]
        found.append([(x, m, *e) for x, m, e in zip(*line.get_data(), ends, strict=True)])
    return found


@pytest.mark.parametrize("level", [0.9, 0.5])
def test_error_bars_are_the_intervals_and_misses_are_marked(random, level):
    mean, std = random.normal(size=60), random.uniform(0.5, 2, size=60)
    y = random.normal(mean, std)
    display = IntervalDisplay.from_predictions(y, mean, std, level=level, name="a model")
    holds, misses = error_bars(display)
    for row, (t, m, s) in enumerate(zip(y, mean, std, strict=True)):
        low, high = stats.norm(m, s).interval(level)
        expected = holds if low <= t <= high else misses
        assert any(np.allclose(bar, (t, m, low, high)) for bar in expected), row
    n_missed = len(misses)
    assert len(holds) + len(misses) == 60
    title = f"a model\n{n_missed} of 60 rows outside the {100 * level:g}% interval ({n_missed / 60:.1%})"
    assert display.ax_.get_title() == title
    colors = [container.lines[0].get_color() for container in display.ax_.containers]
    assert colors[0] != colors[1]


def test_many_rows_are_sampled_but_all_are_counted(random):
    mean, std = random.normal(size=1000), np.ones(1000)
    y = random.normal(mean, std)
    display = IntervalDisplay.from_predictions(y, mean, std)
    drawn = [bar for bars in error_bars(display) for bar in bars]
    assert len({(x, m) for x, m, *_ in drawn}) == len(drawn) == 200
    n_missed = round(1000 * (1 - coverage(y, mean, std)))
    counted = f"{n_missed} of 1000 rows outside the 90% interval ({n_missed / 1000:.1%})"
    assert display.ax_.get_title() == f"{counted}\n200 of 1000 rows drawn"
    again = [bar for bars in error_bars(IntervalDisplay(y, mean, std).plot()) for bar in bars]
    other = [bar for bars in error_bars(IntervalDisplay(y, mean, std).plot(random_state=1)) for bar in bars]
    assert again == drawn != other


@pytest.mark.parametrize("frame", [False, True])
def test_one_input_is_drawn_as_a_curve_with_bands(random, frame):
    X = random.normal(size=(50, 1))
    y = random.normal(2 * X[:, 0] + 1, 1 + np.abs(X[:, 0]))
    display = IntervalDisplay.from_estimator(Line(), pd.DataFrame(X, columns=["hours"]) if frame else X, y)
    x, mean = next(line for line in display.ax_.lines if line.get_label() == "mean").get_data()
    assert len(x) == 400
    assert x[0] < X.min() < X.max() < x[-1]
    np.testing.assert_allclose(mean, 2 * x + 1)
    for band, level in zip(display.ax_.collections[:2], (0.9, 0.5), strict=True):
        assert band.get_label() == f"{100 * level:g}% interval"
        corners = band.get_paths()[0].vertices
        z = stats.norm.ppf((1 + level) / 2)
        offset = np.abs(corners[:, 1] - (2 * corners[:, 0] + 1))
        np.testing.assert_allclose(offset, z * (1 + np.abs(corners[:, 0])))
    inside, outside = (np.asarray(collection.get_offsets()) for collection in display.ax_.collections[2:4])
    missed = np.abs(y - 2 * X[:, 0] - 1) > stats.norm.ppf(0.95) * (1 + np.abs(X[:, 0]))
    np.testing.assert_allclose(inside, np.stack([X[~missed, 0], y[~missed]], axis=1))
    np.testing.assert_allclose(outside, np.stack([X[missed, 0], y[missed]], axis=1))
    assert display.ax_.get_xlabel() == ("hours" if frame else "x")
    assert f"{missed.sum()} of 50 rows outside" in display.ax_.get_title()


def test_rows_make_the_curve_where_there_is_no_model():
    display = IntervalDisplay.from_predictions([0, 0, 0], [3, 1, 2], [1, 1, 1], x=[30, 10, 20], x_name="time")
    np.testing.assert_allclose(display.curve.x, [10, 20, 30])
    np.testing.assert_allclose(display.curve.mean, [1, 2, 3])
    assert display.ax_.get_xlabel() == "time"


def test_many_inputs_of_an_estimator_are_drawn_against_the_targets(random):
    display = IntervalDisplay.from_estimator(Line(), random.normal(size=(10, 2)), np.zeros(10), level=0.5)
    assert display.ax_.get_xlabel() == "observed target"
    assert display.ax_.get_title().startswith("Line\n")
    assert "50% interval" in display.ax_.get_title()


# all


def figures(random):
    """Every display with few and many, short and long."""
    few, many = ["RFM", "ARD"], [f"{LONG}{i}" for i in range(12)]
    yield "bars", ImportancesDisplay([2.0, 1.0], few, "a model").plot()
    yield "bars-1", ImportancesDisplay([1.0]).plot()
    yield "bars-many", ImportancesDisplay(random.gamma(0.3, size=90), [f"{LONG}{i}" for i in range(90)], LONG).plot()
    yield "permuted", PermutationImportancesDisplay(permuted(random, few)).plot()
    yield "permuted-many", PermutationImportancesDisplay(permuted(random, [*many, *map(str, range(90))]), LONG).plot()
    for n, names in ((2, few), (3, many)):
        importances = {name: random.gamma(0.4, size=30) for name in [*names, *many][:n]}
        yield f"agreement-{n}", AgreementDisplay(importances, [f"{LONG}{i}" for i in range(30)]).plot()
        skewed = {name: [1e-7, 3e-5, 1e-3, 1.0] for name in importances}
        yield f"agreement-skewed-{n}", AgreementDisplay(skewed).plot()
    for methods, n_data_sets, n_seeds in ((few[:1], 2, 1), (few, 10, 5), (many, 10, 5)):
        scores = some_scores(random, methods, n_data_sets, n_seeds)
        yield f"scores-{len(methods)}-{n_data_sets}", ScoresDisplay(scores, score_name=LONG).plot()
    for n_data_sets, pairs, names in ((2, 1, few), (10, 3, few), (2, 3, many), (10, 6, many)):
        correlations = {
            f"{names[0]}{d}": {(names[0], f"{p} {names[1]}"): random.uniform(-1, 1, size=7) for p in range(pairs)}
            for d in range(n_data_sets)
        }
        yield f"correlation-{n_data_sets}-{pairs}", CorrelationDisplay(correlations).plot()
    y, zeros = random.normal(size=100), np.zeros(100)
    for names in (few[:1], few, many):
        axes = None
        for i, name in enumerate(names):
            display = ReliabilityDisplay.from_predictions(y, zeros, np.full(100, 0.4 + 0.2 * i), name=name, ax=axes)
            axes = display.ax_
        yield f"reliability-{len(names)}", display
    for n in (1, 30, 1000):
        X = random.normal(size=(n, 1))
        y = 1e5 * random.normal(size=n)
        yield f"interval-{n}", IntervalDisplay.from_predictions(y, y, np.full(n, 2e4), name=LONG)
        yield f"curve-{n}", IntervalDisplay.from_estimator(Line(), X, random.normal(size=n), name=LONG)


def test_every_figure_is_readable(random):
    for name, display in figures(random):
        try:
            assert_readable(display.figure_)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
        plt.close(display.figure_)


def test_displays_draw_onto_given_axes_and_subfigures(random):
    figure = plt.figure(layout="constrained", figsize=(20, 14))
    axes = figure.subfigures(1, 2)[0].subplots(3, 2).ravel()
    ones = np.ones(4)
    drawn = [
        ImportancesDisplay(ones).plot(ax=axes[0]),
        AgreementDisplay({"a": [1, 2, 3], "b": [1, 3, 2]}).plot(ax=axes[1]),
        CorrelationDisplay({"wine": {"a": [0.5]}}).plot(ax=axes[2]),
        ScoresDisplay(some_scores(random, "ab")).plot(ax=axes[3]),
        ReliabilityDisplay.from_predictions(ones, ones, ones, ax=axes[4]),
        IntervalDisplay.from_predictions(ones, ones, ones, ax=axes[5]),
    ]
    for display, ax in zip(drawn, axes, strict=True):
        assert display.ax_ is ax
        assert display.figure_ is ax.figure
    figure.canvas.draw()
