"""Every estimator with landmarks: what workers of a cluster learn is what one process learns from an array."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer import GPRegressor, KernelDiscriminant, KernelEmbedding, Nystrom, RFMClassifier, RFMRegressor
from tests.examples_of import numbers

N = 211
X = numbers(N, 4)
UNEVEN = (100, 3, 0, 7, 101)
ESTIMATORS = {
    "nystrom": Nystrom(n_landmarks=20, random_state=0),
    "nystrom by k-means++": Nystrom(n_landmarks=20, landmarks="kmeans++", random_state=0),
    "spectral contrastive": KernelEmbedding(n_landmarks=20, n_components=5, random_state=0),
    "noise": KernelEmbedding("simple_contrastive", augment="noise", n_landmarks=20, n_components=5, random_state=0),
    "kernel pca": KernelEmbedding("kernel_pca", n_landmarks=20, n_components=5, random_state=0),
}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of a few rows, so that there are more tasks than one."""
    monkeypatch.setattr("mercer.views.sources.ROWS_A_DRAW", 5)


@pytest.mark.parametrize("words", [False, True])
def test_classes_on_workers_are_those_in_memory(client, words):
    y = (np.abs(X[:, 0]) > 0.7).astype(int) + (X[:, 1] > 1.0)
    y = np.array(["no", "some", "many"])[y] if words else y
    settings = {} if words else {"bandwidth": 2.0, "ridge": 0.1}
    model = KernelDiscriminant("gaussian", n_landmarks=20, random_state=0, **settings)
    rows, labels = (da.from_array(each, chunks=(UNEVEN, *each.shape[1:])) for each in (X, y))
    here, there = clone(model).fit(X, y), clone(model).fit(rows, labels)
    assert_array_equal(there.classes_, here.classes_)
    assert_array_equal(there.predict(rows).compute(), here.predict(X))
    assert_allclose(there.predict_proba(rows).compute(), here.predict_proba(X), rtol=1e-8, atol=1e-8)
    assert_allclose(there.decision_function(rows), here.decision_function(X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_on_workers_is_that_in_memory(client, name):
    rows = da.from_array(X, chunks=(UNEVEN, 2))
    here, there = (clone(ESTIMATORS[name]).fit(each) for each in (X, rows))
    answer = there.transform(rows)
    assert isinstance(answer, da.Array)
    assert answer.chunks[0] == UNEVEN
    assert_allclose(answer.compute(), here.transform(X), rtol=1e-8, atol=1e-8)


def test_one_row_in_each_partition(client):
    few = X[:17]
    model = KernelEmbedding(n_landmarks=10, n_components=3, random_state=0)
    rows = da.from_array(few, chunks=(1, 4))
    assert_allclose(clone(model).fit(rows).transform(rows), clone(model).fit(few).transform(few), rtol=1e-8, atol=1e-8)


# ---- tables --------------------------------------------------------------------------------------------------

SETTINGS = {"metric": "identity", "warp": "none", "n_landmarks": 20, "random_state": 0, "working_memory": 1e-2}
TABLE_MODELS = {
    "rfm": RFMRegressor("laplace", **SETTINGS),
    "gp": GPRegressor("gaussian", target_warp="none", **SETTINGS),
    "classes": RFMClassifier("laplace", class_weight="balanced", **SETTINGS),
}


def targets_of(name):
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    return np.where(y > 0.3, "high", np.where(y > -0.5, "middle", "low")) if name == "classes" else y


@pytest.mark.parametrize("name", TABLE_MODELS)
def test_a_table_model_sums_over_all_rows_on_workers_as_in_memory(client, name, monkeypatch):
    """The table is a draw of 80 rows, and the coefficients are those of all rows: not of the draw."""
    monkeypatch.setattr("mercer.tabular_models.all_rows.MOST_TABLE_ROWS", 80)
    y, model = targets_of(name), TABLE_MODELS[name]
    rows, targets = (da.from_array(each, chunks=(UNEVEN, *each.shape[1:])) for each in (X, y))
    here, there = clone(model).fit(X, y), clone(model).fit(rows, targets)
    asked = "predict_proba" if name == "classes" else "predict"
    answer = getattr(there, asked)(rows)
    assert isinstance(answer, da.Array)
    assert_allclose(answer.compute(), getattr(here, asked)(X), rtol=1e-8, atol=1e-8)
    assert_array_equal(there.row_index_, here.row_index_)
    drawn = here.row_index_[0]
    assert_allclose(X[drawn], here.machines_[0].rows[0])
    few = clone(model).fit(X[:80], y[:80])
    assert np.abs(getattr(few, asked)(X) - getattr(here, asked)(X)).max() > 1e-3


def test_rows_that_fit_into_a_table_are_brought_here(client):
    rows = da.from_array(X, chunks=(100, 4))
    y = targets_of("rfm")
    here, there = (clone(TABLE_MODELS["rfm"]).fit(each, y) for each in (X, rows))
    assert_array_equal(there.predict(X), here.predict(X))
