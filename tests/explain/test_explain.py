"""Reasons for one prediction: the local gradient in the units of the columns, and the rows that drove it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import mercer
from mercer.explain import expansion, reasons
from tests.explain.test_expansion import LAWS, digits


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
@pytest.mark.parametrize("name", [name for name in LAWS if name != "SubspaceClustering"])
def test_one_door_for_every_model(name):
    """The pushes of all rows add up, and the gradient is the slope of what they add up to."""
    model, _, meaning = LAWS[name]
    X, y = digits(90)
    # Where no pixel varies there is no slope to speak of, and a smooth kernel has one everywhere.
    X = X[:, X.std(axis=0) > 0.2]
    options = {key: "gaussian" for key in model.get_params() if key.endswith("kernel")}
    model = clone(model).set_params(**options).fit(X[:80], y[:80] if meaning == "logit" else X[:80, :9].sum(axis=1))
    found = reasons(model, X[85], n_rows=10_000)
    assert found.prediction == pytest.approx(found.center + found.pushes.sum(), abs=1e-8)
    assert found.meaning == meaning
    if meaning == "logit":
        assert found.output == str(model.predict(X[[85]])[0])
    position = expansion(model, X[[85]]).outputs.index(found.output)
    if name == "Pipeline":  # its columns are those of the last step
        X, model = model[:-1].transform(X), model[-1]
    step, slopes = 1e-4, dict(zip(found.feature_names, found.gradient, strict=True))
    for k in (0, 5):
        moved = np.repeat(X[[85]], 2, axis=0)
        moved[:, k] += [step, -step]
        up, down = expansion(model, moved).values[:, position]
        assert slopes[f"x{k}"] == pytest.approx((up - down) / (2 * step), rel=1e-3, abs=1e-6)


def test_a_table_answers_in_its_own_columns():
    random = np.random.default_rng(0)
    X = pd.DataFrame({"city": random.choice(["Oslo", "Rome"], size=80), "x": random.normal(size=80), "idle": 0.0})
    y = np.where(X["city"] == "Rome", 3.0, 0.0) + 2.0 * X["x"] + 0.05 * random.normal(size=80)
    model = mercer.tabular(mercer.GPRegressor("gaussian", "ard", warp="none", average=False, random_state=0)).fit(X, y)
    found = reasons(model, X.iloc[4])
    slopes = dict(zip(found.feature_names, found.gradient, strict=True))
    assert slopes["x"] == pytest.approx(2.0, rel=0.1)
    assert np.isnan(slopes["city"])
    assert found.feature_names[-1] == "idle"
    assert found.doubt == pytest.approx(model.predict(X.iloc[[4]], return_std=True)[1][0])
    assert "city" in str(found)
    assert "nan" not in str(found)


def test_clusters_and_images_have_reasons():
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(30, 2)) @ random.normal(size=(2, 8)) for _ in range(2)])
    model = mercer.SubspaceClustering(2, n_iter=1, random_state=0).fit(X)
    found = reasons(model, X[3])
    assert found.output == str(model.predict(X[[3]])[0])
    assert set(model.labels_[found.rows]) == {int(found.output)}
    assert 0.0 <= found.doubt < 0.5
    assert found.feature_names == []
    images = digits(60)[0].reshape(-1, 8, 8)
    embedding = mercer.KernelEmbedding(n_components=2, n_landmarks=20, random_state=0).fit(images)
    assert reasons(embedding, images[2]).prediction == pytest.approx(embedding.transform(images[[2]])[0, 0], abs=1e-6)


def test_bad_input_is_named():
    X, y = table()
    model = MODELS[0].fit(X, y)
    with pytest.raises(ValueError, match="one row"):
        reasons(model, X)
    with pytest.raises(ValueError, match="output=3"):
        reasons(model, X.iloc[0], output=3)
    with pytest.raises(ValueError, match="output='z'"):
        reasons(model, X.iloc[0], output="z")
    with pytest.raises(ValueError, match="2 names|3 names"):
        reasons(model, X.iloc[0], feature_names=["a"])
    with pytest.raises(ValueError, match="model=ColumnWarp"):
        reasons(mercer.ColumnWarp().fit(X), X.iloc[0])
