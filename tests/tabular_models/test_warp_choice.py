"""A warp for each column: those that suit are taken and others are not, as in a loop over refits."""

import numpy as np
import pytest

from mercer import Mahalanobis
from mercer.kernels import Gaussian
from mercer.linalg import ridge_leave_one_out
from mercer.tabular_models import warp_choice
from mercer.tabular_models.column_warp import WARPS
from mercer.tabular_models.fitters import LeftOut, ProcessFitter, RidgeFitter, is_clearly_better
from mercer.tabular_models.tuning import Iterate
from mercer.tabular_models.warp_choice import warp_by_column
from tests import naive
from tests.examples_of import numbers
from tests.tabular_models.test_table import table_of

fitters = pytest.mark.parametrize("fitter", [RidgeFitter(), ProcessFitter()], ids=["ridge", "process"])


def skewed_rows(n=80):
    """A column that wants its logarithm, one that is as it should be, and one of two values that cannot be bent."""
    random = np.random.default_rng(0)
    columns = [np.exp(2 * random.normal(size=n)), random.normal(size=n), random.integers(0, 2, size=n)]
    X = np.column_stack(columns)
    return X, np.sin(np.log(X[:, 0])) + X[:, 1]


def naive_choice(iterate, warp, table, fitter):
    """Every other warp of every column in turn, kept if refits without each row are clearly better for it."""
    w, d = table.mass.numpy(), table.X.shape[1]

    def scores(warps):
        K = naive.kernel_matrix(iterate.kernel, *2 * [table.columns(warps).transform(table.X)])
        misses, variances = naive.ridge_leave_one_out(K, table.y.numpy(), iterate.ridge, w)
        return fitter.error_scores(
            LeftOut(table.y.numpy(), table.y.numpy() - misses, variances, w, np.zeros_like(misses))
        )

    chosen = (warp,) * d
    best = scores(chosen)
    for column in np.argsort(-iterate.kernel.single_metric().importances(d), kind="stable"):
        for name in WARPS:
            tried = (*chosen[:column], name, *chosen[column + 1 :])
            if len(np.unique(table.X[:, column])) > 2 and is_clearly_better(scores(tried), best, w):
                best, chosen = scores(tried), tried
    return warp if chosen == (warp,) * d else chosen


@fitters
@pytest.mark.parametrize("warp", WARPS)
def test_it_is_the_choice_of_a_loop_over_refits(warp, fitter):
    X, y = skewed_rows(24)
    table = table_of(X, y, np.linspace(0.5, 2.0, 24), standardize=True)
    iterate = Iterate(Gaussian(1.5, metric=Mahalanobis([0.8, 1.2, 1.0])), 0.05)
    assert warp_by_column(iterate, warp, table, fitter) == naive_choice(iterate, warp, table, fitter)


@fitters
def test_each_column_gets_the_warp_that_suits_it(fitter):
    table = table_of(*skewed_rows(), standardize=True)
    found = warp_by_column(Iterate(Gaussian(1.5), 0.1), "none", table, fitter)
    assert found[0] in ("log", "rank")
    assert found[1:] == ("none", "none")


@fitters
def test_what_is_as_it_should_be_stays(fitter):
    X = np.random.default_rng(0).uniform(size=(80, 3))
    table = table_of(X, X.sum(axis=1), standardize=True)
    assert warp_by_column(Iterate(Gaussian(10.0), 1e-4), "none", table, fitter) == "none"


@fitters
def test_columns_of_two_values_cannot_be_bent(fitter):
    X = (numbers(40, 6) > 0).astype(float)
    table = table_of(X, X @ np.arange(6) + 0.1 * numbers(40, seed=1), standardize=True)
    for warp in WARPS:
        assert warp_by_column(Iterate(Gaussian(3.0), 0.01), warp, table, fitter) == warp


def test_only_the_columns_that_count_most_are_tried(monkeypatch):
    monkeypatch.setattr(warp_choice, "MOST_COLUMNS", 1)
    asked = []

    def spy(*arguments):
        asked.append(arguments)
        return ridge_leave_one_out(*arguments)

    monkeypatch.setattr(warp_choice, "ridge_leave_one_out", spy)
    table = table_of(*skewed_rows(), standardize=True)
    kernel = Gaussian(1.5, metric=Mahalanobis([0.1, 2.0, 0.1]))
    assert warp_by_column(Iterate(kernel, 0.1), "none", table, RidgeFitter()) == "none"
    assert len(asked) == 3  # As it was, and two other warps of one column.
