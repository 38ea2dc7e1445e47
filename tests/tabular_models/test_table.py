"""Tables of distinct rows: centers, repeats, warps and parts of them."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from mercer import ColumnWarp
from mercer.tabular_models import table as table_module
from mercer.tabular_models.grouped_rows import collapse
from mercer.tabular_models.table import Repeats, Table
from tests.examples_of import numbers


def table_of(X, y, weights=None, *, shared_noise=0.0, standardize=False):
    """The table that the estimators make of rows, targets and weights."""
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    y = y.reshape(len(y), -1)
    rows = collapse(X, y, weights)
    used = rows.group >= 0
    apart = y[used] - rows.y[rows.group[used]]
    measured = np.unique(np.column_stack([rows.group[used], y[used]]), axis=0)
    return Table.from_rows(
        rows,
        scatter=weights[used] @ apart**2,
        further=len(measured) - len(rows.X),
        shared_noise=shared_noise,
        standardize=standardize,
        device=None,
    )


def repeated_rows(n=24, outputs=2, seed=0):
    """Rows of which some come several times, with other targets and with weights."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n // 2, 2))[random.integers(0, n // 2, size=n)]
    Y = np.sin(2 * X[:, [0]] + np.arange(outputs)) + 0.3 * random.normal(size=(n, outputs))
    return X, Y, random.uniform(0.5, 2.0, size=n)


def smooth_rows(n=40, seed=0):
    """Three columns, of which the first counts most and the last not at all."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * random.normal(size=n)


def test_targets_are_centered_by_their_weighted_mean():
    X, Y, w = repeated_rows()
    table = table_of(X, Y, w)
    assert_allclose(table.center, np.average(Y, axis=0, weights=w))
    assert_allclose(table.weights @ table.y, 0.0, atol=1e-10)
    for x, y, mass in zip(table.X, table.y, table.weights, strict=True):
        copies = (x == X).all(axis=1)
        assert mass == pytest.approx(w[copies].sum())
        assert_allclose(y, np.average(Y[copies], axis=0, weights=w[copies]) - table.center)


def test_weights_that_are_all_one_are_not_carried_along():
    plain = table_of(numbers(5, 2), numbers(5))
    assert plain.weights is None
    assert plain.repeats is None
    assert_array_equal(plain.mass, np.ones(5))
    weighted = table_of(numbers(5, 2), numbers(5), np.full(5, 2.0))
    assert_array_equal(weighted.mass, np.full(5, 2.0))


@pytest.mark.parametrize("shared", [0.0, 0.4])
def test_repeats_count_the_measurements_beyond_the_first_and_their_scatter(shared):
    X = np.array([[0.0], [0.0], [0.0], [1.0], [2.0], [2.0]])
    y = np.array([1.0, 2.0, 6.0, 5.0, 4.0, 7.0])
    further, scatter = table_of(X, y, shared_noise=shared).repeats
    assert further == 3
    # The noise that a row has for itself is smaller than all of it by 1 - shared.
    assert_allclose(scatter, [(4.0 + 1.0 + 9.0 + 2 * 1.5**2) / (1 - shared)])
    _, weighted = table_of(X, y, np.array([1.0, 1.0, 2.0, 1.0, 1.0, 1.0]), shared_noise=shared).repeats
    assert_allclose(weighted, [(2.75**2 + 1.75**2 + 2 * 2.25**2 + 2 * 1.5**2) / (1 - shared)])
    assert table_of(np.arange(6.0)[:, None], y, shared_noise=shared).repeats is None


def test_rows_of_no_weight_are_neither_rows_nor_repeats():
    X, Y, w = repeated_rows()
    w[::3] = 0.0
    table, fewer = table_of(X, Y, w), table_of(X[w > 0], Y[w > 0], w[w > 0])
    assert_array_equal(table.X, fewer.X)
    assert_array_equal(table.y, fewer.y)
    assert table.repeats.further == fewer.repeats.further
    assert_allclose(table.repeats.scatter, fewer.repeats.scatter)


def test_shared_noise_changes_the_weights_of_a_table_and_nothing_of_its_targets():
    X, Y, w = repeated_rows()
    own, shared = table_of(X, Y, w), table_of(X, Y, w, shared_noise=0.25)
    assert_array_equal(own.y, shared.y)
    assert_allclose(1 / shared.weights, 0.25 + 0.75 / own.weights)


def test_a_part_keeps_the_center_the_warps_and_its_rows():
    X, Y, w = repeated_rows(60)
    table = table_of(np.exp(X), Y, w)
    known = table.warped("log")
    index = np.array([7, 2, 11, 3])
    part = table.take(index)
    assert len(part) == 4
    assert_array_equal(part.X, table.X[index])
    assert_array_equal(part.y, table.y[index])
    assert_array_equal(part.weights, table.weights[index])
    assert_array_equal(part.center, table.center)
    # Both a warp that was known before and one that comes after are those of the whole table.
    assert_array_equal(part.warped("log"), known[index])
    assert_array_equal(part.warped("rank"), table.warped("rank")[index])
    assert part.columns("rank") is table.columns("rank")
    assert_array_equal(part.take(np.array([1, 3])).X, table.X[[2, 3]])
    assert table_of(X[:5] + np.arange(5)[:, None], Y[:5]).take(np.array([1, 2])).weights is None


def test_a_warp_that_a_part_asks_for_first_is_that_of_all_rows():
    X = np.exp(numbers(40, 2))
    table = table_of(X, numbers(40), standardize=True)
    part = table.take(np.arange(8))
    expected = ColumnWarp(("log", "rank")).fit(table.X).transform(table.X[:8])
    assert_allclose(part.warped(("log", "rank")), expected, atol=1e-12)


def test_a_part_has_its_part_of_the_repeats():
    X, y = np.repeat(numbers(20, 2), 2, axis=0), numbers(40)
    table = table_of(X, y)
    assert table.repeats.further == 20
    half = table.take(np.arange(10)).repeats
    assert half == Repeats(10, table.repeats.scatter / 2)
    whole = table.take(np.random.default_rng(0).permutation(20)).repeats
    assert whole == Repeats(20, table.repeats.scatter)
    rare = table_of(np.concatenate([numbers(20, 2), numbers(1, 2)]), numbers(21))
    assert rare.repeats.further == 1
    assert rare.take(np.arange(5)).repeats is None


def test_warps_are_those_of_the_weighted_rows():
    X, Y, w = repeated_rows(40)
    table = table_of(np.exp(X), Y, w, standardize=True)
    for warp in ("none", "log", "rank", ("log", "none")):
        expected = ColumnWarp(warp).fit(table.X, sample_weight=table.weights.numpy())
        assert_allclose(table.warped(warp), expected.transform(table.X), atol=1e-12)


def test_of_many_rows_a_warp_sees_some(monkeypatch):
    X, y = np.exp(numbers(50, 2)), numbers(50)
    table = table_of(X, y, np.linspace(0.5, 2.0, 50), standardize=True)
    monkeypatch.setattr(table_module, "MOST_WARP_ROWS", 20)
    expected = ColumnWarp("rank").fit(table.X[::3], sample_weight=table.weights.numpy()[::3])
    assert_allclose(table.warped("rank"), expected.transform(table.X), atol=1e-12)


def test_tables_live_in_double_precision_and_fit_a_warp_once():
    table = table_of(numbers(5, 2).astype(np.float32), numbers(5).astype(np.float32))
    assert table.warped("none").dtype == table.y.dtype == torch.float64
    assert table.columns("log") is table.columns("log")
    assert table.warped("log") is table.warped("log")
    assert table.columns(["log", "none"]) is table.columns(("log", "none"))


@pytest.mark.parametrize("warped_before", [False, True])
def test_a_table_in_single_precision_has_the_same_rows_in_seven_digits(warped_before):
    X, Y, w = repeated_rows()
    table = table_of(X, Y, w, standardize=True)
    if warped_before:
        table.warped("rank")
    single = table.in_single_precision()
    assert (single.y.dtype, single.weights.dtype, single.warped("rank").dtype) == (torch.float32,) * 3
    assert_allclose(single.y, table.y, rtol=1e-6)
    assert_allclose(single.weights, table.weights, rtol=1e-6)
    assert_allclose(single.warped("rank"), table.warped("rank"), rtol=1e-5)
    assert table.y.dtype == table.warped("rank").dtype == torch.float64


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("names", [("log", "none", "rank"), ("rank", "rank", "log")])
def test_a_warp_for_each_column_is_made_of_those_of_all_columns(names, standardize):
    """No column is looked at twice, and the warp is the one that would have been fitted, to the last bit."""
    random = np.random.default_rng(1)
    X = np.column_stack([np.exp(random.normal(size=(40, 2))), random.integers(0, 2, size=40)])
    weights = random.uniform(0.5, 2.0, size=40)
    table = table_of(X, X[:, 0], weights, standardize=standardize)
    found = table.columns(names)
    fitted = ColumnWarp(names, standardize=standardize).fit(table.X, sample_weight=table.mass.numpy())
    assert found.warps_ == fitted.warps_
    assert found.get_params() == fitted.get_params()
    assert vars(found).keys() == vars(fitted).keys()
    assert_array_equal(found.transform(X), fitted.transform(X))
    assert_array_equal(found.slopes(X), fitted.slopes(X))
