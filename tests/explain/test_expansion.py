"""Contributions of rows and landmarks add up to what a model says, for every model that is a sum over rows."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.explain import expansion
from mercer.tabular_models.target_warp import forward_of
from tests.test_estimators import ESTIMATORS, FEW

ONE = {"kernel": "laplace", "metric": "full", "warp": "none", "n_iter": 1, "random_state": 0}


def two_machines(cls, **options):
    return cls(**{**ONE, "kernel": "auto", "warp": "auto", "metric": "diagonal", **options})


def predicted(model, X):
    return model.predict(X)


def log_probabilities(model, X):
    return model.predict_log_proba(X)


def latent_values(model, X):
    parts = [m.share * (m.sharpness * m.mean(X) + m.offsets) for m in model.machines_]
    return np.sum(parts, axis=0)


def coordinates(model, X):
    return model.transform(X)


LAWS = {
    "RFMRegressor": (mercer.RFMRegressor(**ONE), predicted, "prediction"),
    "RFMRegressor, averaged": (two_machines(mercer.RFMRegressor), predicted, "prediction"),
    "RFMRegressor, landmarks": (mercer.RFMRegressor(**ONE, n_landmarks=20), predicted, "prediction"),
    "GPRegressor": (mercer.GPRegressor(**ONE), predicted, "prediction"),
    "GPRegressor, landmarks": (mercer.GPRegressor(**ONE, n_landmarks=20), predicted, "prediction"),
    "GPRegressor, averaged": (two_machines(mercer.GPRegressor), predicted, "prediction"),
    "RFMClassifier": (mercer.RFMClassifier(**ONE), log_probabilities, "logit"),
    "RFMClassifier, averaged": (two_machines(mercer.RFMClassifier), log_probabilities, "logit"),
    "GPClassifier": (mercer.GPClassifier(**ONE), latent_values, "logit"),
    "KernelDiscriminant": (mercer.KernelDiscriminant(random_state=0), log_probabilities, "logit"),
    "KernelDiscriminant, landmarks": (
        mercer.KernelDiscriminant(n_landmarks=30, random_state=0),
        log_probabilities,
        "logit",
    ),
    "KernelEmbedding": (mercer.KernelEmbedding(n_landmarks=40, random_state=0), coordinates, "coordinate"),
    "Nystrom": (mercer.Nystrom(n_landmarks=40, random_state=0), coordinates, "coordinate"),
    "Pipeline": (make_pipeline(StandardScaler(), mercer.Nystrom(random_state=0)), coordinates, "coordinate"),
    "TabularModel": (mercer.tabular(mercer.RFMRegressor(**ONE)), predicted, "prediction"),
}


# What learns by a network is no sum over rows, and what only changes columns has no answer of its own.
NETWORKS = {"MCR2", "NMCE", "ManifoldClustering"}
OF_COLUMNS = {"ColumnWarp", "TableEncoder"}


def test_every_estimator_adds_up_or_refuses():
    covered = {type(model).__name__ for model, _, _ in LAWS.values()} | {"SubspaceClustering"}
    assert {type(model).__name__ for model in ESTIMATORS} == (covered - {"Pipeline"}) | NETWORKS | OF_COLUMNS


def digits(n=110):
    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:n] / 16.0, y[:n]


@pytest.mark.filterwarnings("ignore::mercer.exceptions.DataWarning")
@pytest.mark.parametrize("name", LAWS)
def test_contributions_add_up(name):
    model, own, meaning = LAWS[name]
    X, y = digits()
    targets = y if meaning == "logit" else X[:, 20:30].sum(axis=1)
    model = clone(model).fit(X[:80], targets[:80])
    found = expansion(model, X[80:])
    values, told = found.values, np.asarray(own(model, X[80:])).reshape(30, -1)
    if own is log_probabilities:
        values = log_softmax(values, axis=1)
    np.testing.assert_allclose(values, told, atol=1e-8)
    assert found.meaning == meaning
    assert found.contributions.shape == (30, len(found.rows), len(found.outputs))
    assert found.rows.max() < 80


def test_leaves_add_up_and_rows_of_other_leaves_say_nothing():
    random = np.random.default_rng(0)
    X = random.normal(size=(4300, 2))
    y = X[:, 0] + 0.1 * random.normal(size=len(X))
    model = mercer.RFMRegressor("gaussian", "identity", warp="none", bandwidth=2.0, ridge=0.1, random_state=0)
    model.fit(X, y)
    assert model.machines_[0].partition is not None
    found = expansion(model, X[:5])
    np.testing.assert_allclose(found.values[:, 0], model.predict(X[:5]), atol=1e-8)
    assert (found.contributions == 0).mean() > 0.3


def test_a_warped_target_says_so():
    X, _ = digits(60)
    y = np.exp(X[:, 20:30].sum(axis=1) + 0.05 * np.random.default_rng(0).normal(size=60))
    model = mercer.GPRegressor(**ONE, target_warp="log").fit(X, y)
    found = expansion(model, X[:4])
    assert found.meaning == "warped target"
    np.testing.assert_allclose(found.values, model._mean(X[:4]), atol=1e-8)
    assert np.abs(found.values[:, 0] - forward_of(model.target_warps_, y[:4, None])[:, 0]).max() < 2.0


def test_masses_of_clusters_add_up_to_the_assignment():
    random = np.random.default_rng(0)
    X = np.concatenate([random.normal(size=(30, 2)) @ random.normal(size=(2, 8)) for _ in range(2)])
    model = mercer.SubspaceClustering(2, n_iter=1, random_state=0).fit(X)
    found = expansion(model, X)
    np.testing.assert_array_equal(found.values.argmax(axis=1), model.predict(X))
    np.testing.assert_allclose(found.values.sum(axis=1), np.asarray(abs(model.expressed(X)).sum(axis=0)).ravel())


def test_a_discriminant_has_coordinates_too():
    X, y = digits()
    model = mercer.KernelDiscriminant(random_state=0).fit(X, y)
    found = expansion(model, X[:5], of="coordinates")
    np.testing.assert_allclose(found.values, model.transform(X[:5]), atol=1e-8)


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
@pytest.mark.parametrize("name", sorted(NETWORKS | OF_COLUMNS))
def test_what_is_no_sum_over_rows_refuses(name):
    X, y = digits(30)
    model = next(model for model in ESTIMATORS if type(model).__name__ == name)
    few = {key: FEW for key in model.get_params(deep=False) if key.endswith("recipe")}
    model = clone(model).set_params(**few).fit(X, y)
    with pytest.raises(ValueError, match=f"model={name}"):
        expansion(model, X)


def test_bad_input_is_named():
    X, _ = digits(60)
    with pytest.raises(ValueError, match="of='classes'"):
        expansion(mercer.Nystrom().fit(X), X, of="classes")


def test_a_table_with_words_adds_up():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"city": random.choice(["Oslo", "Rome"], size=60), "x": random.normal(size=60)})
    y = np.where(table["city"] == "Rome", 1.0, 0.0) + table["x"] + 0.1 * random.normal(size=60)
    model = mercer.tabular(mercer.GPRegressor(**ONE)).fit(table, y)
    np.testing.assert_allclose(expansion(model, table).values[:, 0], model.predict(table), atol=1e-8)
