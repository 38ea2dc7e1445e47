"""A wrong number among the targets: the row is named and left out, and nothing else of the fit changes."""

import re

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from mercer import GPRegressor, RFMRegressor
from mercer.exceptions import DataWarning
from mercer.tabular_models.target_outliers import far_beyond, without_outliers

FIXED = {"kernel": "gaussian", "metric": "identity", "warp": "none", "random_state": 0}
by_model = pytest.mark.parametrize("model", [GPRegressor, RFMRegressor])


def table(n=60, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * random.normal(size=n)


@by_model
@pytest.mark.parametrize("wrong", [1e12, -1e12, 1e6, 300.0])
def test_a_row_with_a_wrong_target_is_named_and_predicts_as_if_it_were_not_there(model, wrong):
    X, y = table()
    y[17] = wrong
    rest = np.arange(60) != 17
    with pytest.warns(DataWarning, match=r"in row 17 \(counted from 0\).*left out of the fit"):
        fitted = model(**FIXED).fit(X, y)
    without = model(**FIXED).fit(X[rest], y[rest])
    np.testing.assert_allclose(fitted.predict(X), without.predict(X), rtol=1e-12)
    assert 17 not in fitted.row_index_


@by_model
def test_a_weight_and_copies_of_the_wrong_row_change_nothing(model):
    X, y = table()
    y[17] = 1e12
    weights = np.ones(60)
    weights[17] = 3.0
    with pytest.warns(DataWarning, match="row 17"):
        weighted = model(**FIXED).fit(X, y, sample_weight=weights)
    with pytest.warns(DataWarning, match="row 17, .*row 60"):
        copied = model(**FIXED).fit(np.vstack([X, X[[17]]]), np.append(y, y[17]))
    np.testing.assert_allclose(weighted.predict(X), copied.predict(X), rtol=1e-9)


def test_a_row_of_weight_zero_has_no_part_in_it():
    y, weights = np.append(np.linspace(0, 1, 40), 1e9), np.ones(41)
    weights[40] = 0.0
    assert without_outliers(y[:, None], weights) is weights


def test_what_the_logarithm_makes_ordinary_is_kept():
    X, y = table()
    y = np.exp(3 * y)
    y[17] = 100 * np.delete(y, 17).max()
    fitted = GPRegressor(**FIXED, target_warp="log").fit(X, y)
    assert 17 in fitted.row_index_
    with pytest.warns(DataWarning, match=re.escape(f"{y[17]:.4g} in row 17")):
        GPRegressor(**FIXED).fit(X, y)


@pytest.mark.parametrize("seed", range(20))
def test_ordinary_targets_are_left_alone(seed):
    random = np.random.default_rng(seed)
    for y in (random.normal(size=300), random.exponential(size=300), random.lognormal(size=300)):
        assert not far_beyond(y).any()
    zero_inflated = np.where(random.random(300) < 0.95, 0.0, random.exponential(size=300))
    assert not far_beyond(zero_inflated).any()
    assert not far_beyond(np.append(np.zeros(200), 1e6)).any()  # a rare event
    assert not far_beyond(np.array([1.0, 2.0, 3.0, 1e6])).any()  # too few to say


def test_a_few_must_be_farther_than_one_and_are_all_named():
    y = np.linspace(-1.0, 1.0, 300)
    group = np.append(y, [100.0, 101.0, 102.0])
    assert not far_beyond(group).any()
    wrong = np.append(y, [1e9, -3e9])
    assert np.flatnonzero(far_beyond(wrong)).tolist() == [300, 301]


def test_one_wrong_output_of_several_leaves_the_row_out():
    X, y = table()
    Y = np.column_stack([y, -y])
    Y[5, 1] = 1e10
    with pytest.warns(DataWarning, match="1e\\+10 in row 5"):
        fitted = RFMRegressor(**FIXED).fit(X, Y)
    assert 5 not in fitted.row_index_


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@by_model
def test_by_default_the_other_rows_are_predicted_as_well_as_without_the_outlier(model):
    for seed in range(3):
        X, y = table(300, seed)
        clean, wrong = model(random_state=0).fit(X, y).score(X, y), y.copy()
        wrong[17] = 1e12
        rest = np.arange(300) != 17
        assert model(random_state=0).fit(X, wrong).score(X[rest], y[rest]) >= 0.9 * clean


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@by_model
def test_heavy_tails_are_predicted_no_worse_than_by_scikit_learn(model):
    """Geometric mean over samples of the ratios of two errors to the conditional median: mean absolute, and RMSE."""
    for draw, truth in (
        (lambda f, random: f + 0.3 * random.standard_cauchy(len(f)), lambda f: f),
        (lambda f, random: np.exp(f + 0.5 * random.normal(size=len(f))), np.exp),
    ):
        ratios = []
        for seed in range(16):
            random = np.random.default_rng(seed)
            X = random.normal(size=(400, 3))
            f = np.sin(2 * X[:, 0]) + X[:, 1]
            y, half = draw(f, random), 200
            peer = GaussianProcessRegressor(
                ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1), normalize_y=True, random_state=0
            )
            ours, theirs = (
                m.fit(X[:half], y[:half]).predict(X[half:]) - truth(f[half:]) for m in (model(random_state=0), peer)
            )
            absolute, squared = np.abs(ours).mean() / np.abs(theirs).mean(), (ours**2).mean() / (theirs**2).mean()
            ratios.append((absolute, np.sqrt(squared)))
        assert (np.exp(np.mean(np.log(ratios), axis=0)) <= 1.0).all(), ratios
