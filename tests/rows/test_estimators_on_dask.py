"""Every estimator with landmarks: what workers of a cluster learn is what one process learns from an array."""

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer import KernelDiscriminant, KernelEmbedding, Nystrom
from tests.examples_of import numbers

N = 211
X = numbers(N, 4)
PARTITIONS = {"uneven": (100, 3, 0, 7, 101), "one row each": (1,) * N}
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
    settings = {} if words else {"kernel": "gaussian", "bandwidth": 2.0, "ridge": 0.1}
    model = KernelDiscriminant(n_landmarks=20, random_state=0, working_memory=1e-3, **settings)
    rows, labels = (da.from_array(each, chunks=((100, 3, 0, 7, 101), *each.shape[1:])) for each in (X, y))
    here, there = clone(model).fit(X, y), clone(model).fit(rows, labels)
    assert_array_equal(there.classes_, here.classes_)
    assert_array_equal(there.predict(rows).compute(), here.predict(X))
    assert_allclose(there.predict_proba(rows).compute(), here.predict_proba(X), rtol=1e-8, atol=1e-8)
    assert_allclose(there.decision_function(rows), here.decision_function(X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("partitions", PARTITIONS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_on_workers_is_that_in_memory(client, name, partitions):
    if partitions == "one row each" and name != "spectral contrastive":
        pytest.skip("one estimator will do for as many partitions")
    rows = da.from_array(X, chunks=(PARTITIONS[partitions], 2))
    here, there = ESTIMATORS[name].fit(X).transform(X), ESTIMATORS[name].fit(rows).transform(rows)
    assert isinstance(there, da.Array)
    assert there.chunks[0] == PARTITIONS[partitions]
    assert_allclose(there.compute(), here, rtol=1e-8, atol=1e-8)
