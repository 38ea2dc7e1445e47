"""Clusterings learn from files and from Dask what they learn from an array, and answer in kind."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer import NMCE, ManifoldClustering, SubspaceClustering
from mercer.exceptions import InvalidParameterError
from mercer.rows import open_rows
from mercer.training import Recipe

RANDOM = np.random.default_rng(0)
X = np.vstack([RANDOM.normal(size=(40, 2)) @ RANDOM.normal(size=(2, 8)) for _ in range(3)])
X = X[RANDOM.permutation(120)]
UNEVEN = (70, 0, 1, 49)
SHORT = Recipe(n_epochs=2, batch_size=40)
SMALL = {"augment": "noise", "hidden": 8, "start_recipe": SHORT, "recipe": SHORT, "random_state": 0}
SMALL = {"augment": "noise", "hidden": 8, "start_recipe": SHORT, "recipe": SHORT, "random_state": 0}
ESTIMATORS = {
    "subspaces": SubspaceClustering(3, random_state=0),
    "subspaces by landmarks": SubspaceClustering(3, n_landmarks=40, random_state=0),
    "manifolds": ManifoldClustering(3, eta=0.175, **SMALL),
    "manifolds by a head": NMCE(3, n_init=2, **SMALL),
}


@pytest.mark.filterwarnings("ignore::mercer.exceptions.MercerWarning")
@pytest.mark.parametrize("most", [120, 90])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_clusters_of_rows_elsewhere_are_those_of_the_same_rows_in_memory(name, most, tmp_path, monkeypatch):
    for module in ("subspace.subspace_clustering", "manifold.base"):
        monkeypatch.setattr(f"mercer.clustering.{module}.MOST_ROWS_BROUGHT", most)
    with_dask = da.from_array(X, chunks=(UNEVEN, 4))
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=25)
    in_files = open_rows(tmp_path)
    there, read = (clone(ESTIMATORS[name]).fit(rows) for rows in (with_dask, in_files))
    drawn = there.drawn_rows_
    assert (drawn is None) == (most == 120)
    here = clone(ESTIMATORS[name]).fit(X if drawn is None else X[drawn])
    assert here.drawn_rows_ is None
    assert_array_equal(there.labels_, here.labels_)
    assert_array_equal(read.labels_, here.labels_)
    answer = there.predict(with_dask)
    assert isinstance(answer, da.Array)
    assert answer.chunks == (UNEVEN,)
    assert_array_equal(answer.compute(), here.predict(X))
    assert list(read.feature_names_in_) == list(frame.columns)
    assert_array_equal(read.predict(in_files), read.predict(frame))
    if hasattr(here, "transform"):
        assert_allclose(there.transform(with_dask).compute(), here.transform(X), atol=1e-6)
        assert_array_equal(there.cut(with_dask, 2).compute(), here.cut(X, 2)) if hasattr(here, "cut") else None


def test_views_that_are_there_have_to_be_in_memory():
    rows = da.from_array(X)
    with pytest.raises(InvalidParameterError, match=r"fit\(\) takes rows of files and of Dask"):
        ManifoldClustering(3).fit_views(rows, rows, rows)
