"""Reasons for one prediction: the local gradient in the units of the columns, and the rows that drove it."""

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.explain import reasons


def table(n=60, seed=0):
    X = np.random.default_rng(seed).uniform(0.5, 3.0, size=(n, 3)) * [1.0, 100.0, 0.01]
    return pd.DataFrame(X, columns=["small", "large", "idle"]), 2.0 * X[:, 0] + 0.03 * X[:, 1]


MODELS = [
    mercer.RFMRegressor("gaussian", "diagonal", warp="none", ridge=1e-4, random_state=0),
    mercer.GPRegressor("gaussian", "ard", warp="log", noise_floor=1e-5, random_state=0),
]


@pytest.mark.filterwarnings("ignore::mercer.exceptions.DataWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_gradients_are_in_the_units_of_the_columns_and_pushes_add_up(model):
    X, y = table()
    model = model.fit(X, y)
    found = reasons(model, X.iloc[3], n_rows=len(X))
    slopes = dict(zip(found.feature_names, found.gradient, strict=True))
    assert slopes["small"] == pytest.approx(2.0, rel=0.1)
    assert slopes["large"] == pytest.approx(0.03, rel=0.1)
    assert found.feature_names[-1] == "idle"
    assert found.prediction == pytest.approx(model.predict(X.iloc[[3]])[0], abs=1e-8)
    assert found.pushes.sum() == pytest.approx(found.prediction - y.mean(), abs=1e-8)
    assert sorted(found.rows) == list(range(len(X)))
    assert np.all(np.diff(np.abs(found.pushes)) <= 0)
    assert "small" in str(found)
    assert f"row {found.rows[0]}" in str(found)


def test_the_nearest_row_drives_a_narrow_kernel_and_classes_are_told_apart():
    X, y = table()
    model = mercer.RFMClassifier("gaussian", "identity", warp="none", bandwidth=0.05, random_state=0)
    model.fit(X, np.where(y > y.mean(), "high", "low"))
    found = reasons(model, X.iloc[[7]], n_rows=1, output=1)
    assert list(found.rows) == [7]
    assert np.sign(found.pushes[0]) == (1.0 if y[7] <= y.mean() else -1.0)


@pytest.mark.filterwarnings("ignore::mercer.exceptions.DataWarning")
def test_a_model_of_a_table_as_it_comes_has_reasons():
    X, y = table()
    X["city"] = np.where(np.arange(len(X)) % 3, "Oslo", None)
    X["day"] = pd.date_range("2024-01-01", periods=len(X)).astype(str)
    model = mercer.tabular(MODELS[0]).fit(X, y)
    found = reasons(model, X.iloc[[5]], n_rows=len(X))
    assert found.prediction == pytest.approx(model.predict(X.iloc[[5]])[0], abs=1e-8)
    assert set(found.feature_names) == set(model.encoder_.get_feature_names_out())
    assert {"small", "large"} == set(found.feature_names[:2])
    same = reasons(model, X.iloc[5], n_rows=1)
    assert (same.prediction, same.rows[0]) == (pytest.approx(found.prediction), found.rows[0])


def test_bad_input_is_named():
    X, y = table()
    model = MODELS[0].fit(X, y)
    with pytest.raises(ValueError, match="one row"):
        reasons(model, X)
    with pytest.raises(ValueError, match="output=3"):
        reasons(model, X.iloc[0], output=3)
    with pytest.raises(ValueError, match="model="):
        reasons(mercer.Nystrom(), X.iloc[0])
