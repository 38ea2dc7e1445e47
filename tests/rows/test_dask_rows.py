"""Rows of Dask, of files with workers, and of frames: the same rows, and errors that name the place."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer import KernelDiscriminant, KernelEmbedding, Nystrom, RFMRegressor, SubspaceClustering
from mercer.exceptions import ClusterError, DataFileError, InvalidParameterError
from mercer.rows import DaskRows, open_rows, sum_over_rows
from mercer.rows.cluster import Cluster
from tests.examples_of import numbers

X = numbers(60, 3)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=np.where(X[:, 0] > 0.2, "up", "down"))
MODEL = Nystrom(n_landmarks=10, random_state=0)


def test_rows_of_dask_by_slices_and_numbers(client):
    rows = DaskRows(da.from_array(X, chunks=((10, 0, 45, 5), (2, 1))), client=client)
    assert_array_equal(rows[7:33], X[7:33])
    assert_array_equal(rows[np.array([50, 3, 3])], X[[50, 3, 3]])
    assert_array_equal(
        np.concatenate([np.asarray(part.compute()) for part in rows.parts([slice(0, 20), slice(20, 60)])]), X
    )


def test_a_frame_of_dask_and_files_read_by_workers(client, tmp_path):
    FRAME.to_parquet(tmp_path / "x.parquet", row_group_size=7)
    frame = dd.from_pandas(FRAME, npartitions=4)
    model = KernelDiscriminant("gaussian", bandwidth=2.0, n_landmarks=10, random_state=0)
    here = clone(model).fit(FRAME[["a", "b", "c"]], FRAME["y"])
    by_frame = clone(model).fit(frame[["a", "b", "c"]], frame["y"])
    rows = open_rows(tmp_path, client=client)
    by_files = clone(model).fit(rows.without("y"), rows.column("y"))
    by_one = open_rows(tmp_path)
    by_process = clone(model).fit(by_one.without("y"), by_one.column("y"))
    wanted = here.predict_proba(FRAME[["a", "b", "c"]])
    for other in (by_frame, by_files, by_process):
        assert list(other.feature_names_in_) == ["a", "b", "c"]
        assert list(other.classes_) == ["down", "up"]
        assert_allclose(other.predict_proba(FRAME[["a", "b", "c"]]), wanted, rtol=1e-8, atol=1e-8)
    assert_allclose(by_frame.predict_proba(frame[["a", "b", "c"]]).compute(), wanted, rtol=1e-8, atol=1e-8)
    assert_allclose(by_process.predict_proba(by_one.without("y")), wanted, rtol=1e-8, atol=1e-8)
    with pytest.raises(ValueError, match=r"X has the columns \['a', 'c'\], and KernelDiscriminant was fitted with"):
        by_frame.predict(frame[["a", "c"]])
    with pytest.raises(ValueError, match="X has 2 features"):
        by_process.predict(by_one.without("y", "a"))


def test_frames_in_memory_and_memory_maps_are_the_same_rows(tmp_path):
    np.save(tmp_path / "x.npy", X)
    wanted = clone(MODEL).fit(X).transform(X)
    for rows in (FRAME[["a", "b", "c"]], pl.from_pandas(FRAME[["a", "b", "c"]]), open_rows(tmp_path / "x.npy")):
        assert_allclose(clone(MODEL).fit(rows).transform(rows), wanted, rtol=1e-12)


def column_sums():
    """Return a function of blocks."""
    return lambda x: (x.sum(dim=0),)


def test_many_blocks_make_fewer_tasks_and_the_same_bits(client):
    cluster = Cluster(client)
    assert [cluster._blocks_a_task(n) for n in (1, 1535, 1536, 12_287, 12_288, 10**9)] == [8, 8, 64, 64, 512, 512]
    many = np.random.default_rng(0).normal(size=(1600, 2)) * 10.0 ** np.linspace(-8, 8, 1600)[:, None]
    there = sum_over_rows(
        column_sums, (), DaskRows(da.from_array(many, chunks=(333, 2)), client=client), rows_a_block=1
    )
    assert_array_equal(there[0], sum_over_rows(column_sums, (), many, rows_a_block=1)[0])


def test_single_precision_stays_with_workers(client):
    rows = da.from_array(X.astype(np.float32), chunks=(20, 3))
    here, there = clone(MODEL).fit(X.astype(np.float32)), clone(MODEL).fit(rows)
    answer = there.transform(rows)
    assert answer.dtype == np.float32
    assert_allclose(answer.compute(), here.transform(X.astype(np.float32)), rtol=1e-4, atol=1e-5)


def test_labels_in_another_order_of_partitions_are_the_same(client):
    """With landmarks given: the sums differ by rounding alone."""
    model = KernelEmbedding("kernel_pca", landmarks=X[:12], n_components=3, bandwidth=1.0, ridge=0.0, random_state=0)
    parts = [X[:25], X[25:30], X[30:]]
    first, other = (
        clone(model).fit(da.concatenate([da.from_array(parts[i]) for i in order])) for order in ((0, 1, 2), (2, 0, 1))
    )
    assert_allclose(np.abs(first.transform(X)), np.abs(other.transform(X)), rtol=1e-6, atol=1e-8)


# ---- bad input -----------------------------------------------------------------------------------------------


def test_partitions_of_unknown_size_are_an_error_that_says_what_to_do():
    rows = da.from_array(X, chunks=(20, 3))
    with pytest.raises(InvalidParameterError, match=r"known numbers of rows.*X.compute_chunk_sizes\(\) counts them"):
        MODEL.fit(rows[rows[:, 0] > 0])


def test_a_missing_value_names_the_partition(client):
    bad = X.copy()
    bad[33, 1] = np.nan
    rows = da.from_array(bad, chunks=((30, 20, 10), 3))
    place = r"X: partition 1 has a missing value \(NaN\) in column 1 of row 33 "
    with pytest.raises(DataFileError, match=place):
        clone(MODEL).set_params(landmarks="kmeans++").fit(rows)
    with pytest.raises(DataFileError, match="partition 1 of X: Input X contains NaN"):
        clone(MODEL).fit(X).transform(rows).compute()


def test_other_kinds_and_shapes_are_refused():
    with pytest.raises(InvalidParameterError, match=r"X=\['y'\] is not allowed.*columns of numbers"):
        MODEL.fit(dd.from_pandas(FRAME, npartitions=2))
    with pytest.raises(InvalidParameterError, match=r"of shape \(rows, columns\)"):
        MODEL.fit(da.from_array(X[:, 0]))
    with pytest.raises(ValueError, match="X has 60 rows and y has 59"):
        KernelDiscriminant(n_landmarks=5).fit(da.from_array(X), FRAME["y"].to_numpy()[:59])
    with pytest.raises(InvalidParameterError, match=r"kernel='precomputed' is not allowed"):
        Nystrom("precomputed").fit(da.from_array(X @ X.T))


def test_text_columns_of_files_are_refused_with_what_to_do(tmp_path):
    FRAME.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(InvalidParameterError, match=r"`rows.without\('y'\)` leaves these out"):
        RFMRegressor(n_landmarks=5).fit(open_rows(tmp_path), X[:, 0])


def test_a_worker_without_enough_memory_says_what_to_lower():
    from distributed.scheduler import KilledWorker

    class Lost:
        def compute(self, tasks):
            return tasks

        def gather(self, futures):
            raise KilledWorker("block_sum-1", "tcp://127.0.0.1:1", 3)

    with pytest.raises(ClusterError, match=r"Lower working_memory or n_landmarks"):
        Cluster(Lost()).compute([])


def test_clusters_of_rows_elsewhere():
    model = SubspaceClustering(2, random_state=0).fit(X)
    answer = model.predict(da.from_array(X, chunks=(25, 3)))
    assert_array_equal(answer.compute(scheduler="sync"), model.predict(X))
