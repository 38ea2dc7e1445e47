"""Columns bent one by one: each warp against its few plain lines, and the laws that all of them keep."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer import ColumnWarp
from mercer.tabular_models.column_warp import MOST_KNOTS
from tests.examples_of import numbers

SKEWED = np.exp(1.5 * numbers(60, 3))


def naive_log(x, at):
    """log(1 + u), u the distance from the end without the tail over its median, odd below it; then standardized."""
    mirrored = ((x - x.mean()) ** 3).sum() < 0
    x, at = (-x, -at) if mirrored else (x, at)
    spread = np.median([v - x.min() for v in x if v > x.min()])

    def bent(values):
        return np.array([np.sign(v - x.min()) * np.log(1 + abs(v - x.min()) / spread) for v in values])

    sign = -1 if mirrored else 1
    return sign * (bent(at) - bent(x).mean()) / bent(x).std()


def naive_rank(x, at):
    """The share of rows below, ties counting half, linear in between; then standardized."""
    values = np.unique(x)
    shares = np.array([(x < v).mean() + (x == v).mean() / 2 for v in values])
    bent = np.interp(x, values, shares)
    return (np.interp(at, values, shares) - bent.mean()) / bent.std()


@pytest.mark.parametrize("mirror", [1.0, -1.0])
@pytest.mark.parametrize(("warp", "twin"), [("log", naive_log), ("rank", naive_rank)])
def test_warps_equal_their_naive_twins(warp, twin, mirror):
    x = mirror * np.append(SKEWED[:, 0], [2.0, 2.0, 2.0])
    at = np.linspace(x.min() - 3, x.max() + 3, 50)
    fitted = ColumnWarp(warp).fit(x[:, None])
    assert_allclose(fitted.transform(at[:, None])[:, 0], twin(x, at), atol=1e-10)


@pytest.mark.parametrize("warp", ["none", "log", "rank"])
def test_warps_rise_and_have_mean_0_and_deviation_1(warp):
    for X in (SKEWED, -SKEWED, numbers(60, 3)):
        fitted = ColumnWarp(warp).fit(X)
        made = fitted.transform(X)
        assert_allclose(made.mean(axis=0), 0.0, atol=1e-12)
        assert_allclose(made.std(axis=0), 1.0)
        line = np.linspace(X.min(axis=0) - 1, X.max(axis=0) + 1, 400)
        rises = np.diff(fitted.transform(line), axis=0)
        assert (rises >= 0).all()
        inside = ((line[1:] <= X.max(axis=0)) & (line[:-1] >= X.min(axis=0))) if warp == "rank" else rises > -1
        assert (rises[inside] > 0).all()


@pytest.mark.parametrize("warp", ["none", "log", "rank"])
def test_units_do_not_matter(warp):
    expected = ColumnWarp(warp).fit_transform(SKEWED)
    for scale, shift in ((1e3, 0.0), (1e-6, 0.0), (2.54, 300.0)):
        assert_allclose(ColumnWarp(warp).fit_transform(scale * SKEWED + shift), expected, atol=1e-7)


def test_any_rising_map_has_the_same_ranks_and_a_mirrored_column_the_mirrored_result():
    expected = ColumnWarp("rank").fit_transform(SKEWED)
    assert_allclose(ColumnWarp("rank").fit_transform(np.log(SKEWED) ** 3), expected, atol=1e-10)
    for warp in ("none", "log", "rank"):
        assert_allclose(ColumnWarp(warp).fit_transform(-SKEWED), -ColumnWarp(warp).fit_transform(SKEWED), atol=1e-10)


def test_the_log_warp_goes_smoothly_below_the_minimum():
    fitted = ColumnWarp("log").fit(SKEWED)
    end, step = SKEWED.min(axis=0), 1e-6
    below, at, above = (fitted.transform([end + move])[0] for move in (-step, 0.0, step))
    assert_allclose(at - below, above - at, rtol=1e-5)
    assert (at - below > 0).all()


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("mirror", [1.0, -1.0])
@pytest.mark.parametrize("warp", ["none", "log", "rank", ["rank", "log", "none"]])
def test_slopes_equal_finite_differences(warp, mirror, standardize):
    X = mirror * SKEWED
    fitted = ColumnWarp(warp, standardize=standardize).fit(X)
    at = np.concatenate([X[:-1] + 0.37 * (np.sort(X, axis=0)[1:] - np.sort(X, axis=0)[:-1]), X[:1] - 99, X[:1] + 99])
    step = 1e-7
    differences = (fitted.transform(at + step) - fitted.transform(at - step)) / (2 * step)
    assert_allclose(fitted.slopes(at), differences, rtol=1e-4, atol=1e-6)


def test_columns_have_their_own_warps_and_two_values_or_one_are_left_alone():
    X = np.column_stack([SKEWED, numbers(60) > 0, np.full(60, 7.3)])
    mixed = ColumnWarp(["log", "none", "rank", "log", "rank"]).fit(X)
    assert mixed.warps_ == ["log", "none", "rank", "none", "none"]
    made = mixed.transform(X)
    for k, warp in enumerate(mixed.warps_):
        assert_array_equal(made[:, k], ColumnWarp(warp).fit_transform(X)[:, k])
    assert_allclose(made[:, 4], 0.0, atol=1e-12)
    assert len(np.unique(made[:, 3])) == 2
    assert_array_equal(ColumnWarp("rank", standardize=False).fit_transform(X)[:, 3:], X[:, 3:])


def test_many_values_have_few_knots_that_stay_close_to_the_distribution():
    x = np.exp(numbers(5000))
    fitted = ColumnWarp("rank", standardize=False).fit(x[:, None])
    values, _ = fitted.parameters_[0]
    assert MOST_KNOTS // 2 < len(values) <= MOST_KNOTS
    assert (values[0], values[-1]) == (x.min(), x.max())
    ranks = (np.argsort(np.argsort(x)) + 0.5) / len(x)
    assert np.abs(fitted.transform(x[:, None])[:, 0] - ranks).max() < 1 / MOST_KNOTS
    few = np.round(numbers(5000))
    assert len(ColumnWarp("rank").fit(few[:, None]).parameters_[0][0]) == len(np.unique(few))


def test_weights_count_in_the_mean_and_the_deviation():
    weights = np.random.default_rng(0).integers(1, 4, size=60)
    weighted = ColumnWarp("log").fit(SKEWED, sample_weight=weights).transform(SKEWED)
    assert_allclose(np.average(weighted, axis=0, weights=weights), 0.0, atol=1e-12)
    assert_allclose(np.average(weighted**2, axis=0, weights=weights), 1.0)
    repeated = ColumnWarp().fit(np.repeat(SKEWED, weights, axis=0))
    assert_allclose(ColumnWarp().fit(SKEWED, sample_weight=weights).scale_, repeated.scale_)


@pytest.mark.parametrize("warp", ["none", "log", "rank"])
def test_precision_is_that_of_the_rows_and_rows_are_not_written_to(warp):
    X = SKEWED.astype(np.float32)
    before = X.copy()
    single = ColumnWarp(warp).fit_transform(X)
    assert single.dtype == np.float32
    assert_array_equal(X, before)
    assert_allclose(single, ColumnWarp(warp).fit_transform(X.astype(np.float64)), atol=1e-5)


def test_errors_name_the_parameter():
    with pytest.raises(ValueError, match=r"warp='sqrt' .*'none', 'log', 'rank'"):
        ColumnWarp("sqrt").fit(SKEWED)
    with pytest.raises(ValueError, match=r"warp='sqrt' "):
        ColumnWarp(["none", "log", "sqrt"]).fit(SKEWED)
    with pytest.raises(ValueError, match=r"warp=\['log', 'log'\] .* or 3 of them, one a column"):
        ColumnWarp(["log", "log"]).fit(SKEWED)


def test_units_do_not_matter_however_small():
    assert_allclose(ColumnWarp().fit_transform(1e-15 * SKEWED), ColumnWarp().fit_transform(SKEWED), atol=1e-7)
