"""Losses that are trained by steps learn from files and from Dask what they learn from an array."""

import errno
import io
from dataclasses import replace

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer import KernelEmbedding
from mercer.embedding import Steps
from mercer.embedding.steps import split_rows
from mercer.embedding.trained_map import TrainedMap
from mercer.exceptions import DataFileError
from mercer.rows import open_rows
from mercer.rows.pieces import Piece
from tests.examples_of import numbers

X = numbers(211, 4)
FRAME = pd.DataFrame(X, columns=list("abcd"))
UNEVEN = (100, 3, 0, 7, 101)
OTHER = X + 0.1 * numbers(211, 4, seed=1)
# Without the guard, which would keep a start that is the same for all.
SHORT = Steps(epochs=2, batch_size=40, guard=False)
ANEW = replace(SHORT, redraw=True)
LEARNED = {"landmarks": X[:20], "n_components": 5, "random_state": 0}
EMBEDDINGS = {
    "simclr": KernelEmbedding("simclr", solver=SHORT, **LEARNED),
    "simclr, views drawn anew": KernelEmbedding("simclr", solver=ANEW, **LEARNED),
    "vicreg, noise": KernelEmbedding("vicreg", augment="noise", solver=ANEW, **LEARNED),
    "barlow twins, guarded": KernelEmbedding("barlow_twins", solver=replace(ANEW, guard=True), **LEARNED),
    "byol": KernelEmbedding("byol", solver=ANEW, **LEARNED),
    "spectral contrastive by steps": KernelEmbedding("spectral_contrastive", solver=ANEW, **LEARNED),
    "kernel pca by steps": KernelEmbedding("kernel_pca", solver=ANEW, bandwidth=1.0, **LEARNED),
    "landmarks drawn": KernelEmbedding("simclr", solver=ANEW, n_landmarks=20, n_components=5, random_state=0),
    "landmarks by view": KernelEmbedding(
        "vicreg", solver=ANEW, n_landmarks=20, n_components=5, landmark_tuples="by_view", random_state=0
    ),
    "autoencoder": KernelEmbedding("kernel_autoencoder", landmarks=X[:20], n_components=2, random_state=0),
}


@pytest.fixture
def in_files(tmp_path):
    for number, rows in enumerate((FRAME[:90], FRAME[90:91], FRAME[91:])):
        rows.to_parquet(tmp_path / f"part-{number}.parquet", row_group_size=25)
    return open_rows(tmp_path)


@pytest.mark.parametrize("name", EMBEDDINGS)
def test_steps_on_rows_elsewhere_are_those_in_memory(name, in_files, monkeypatch):
    monkeypatch.setattr("mercer.views.sources.ROWS_A_DRAW", 64)
    monkeypatch.setattr("mercer.blocks.ROWS_A_PART", 50)
    with_dask = da.from_array(X, chunks=(UNEVEN, 2))
    here, read, there = (clone(EMBEDDINGS[name]).fit(rows) for rows in (X, in_files, with_dask))
    for other in (read, there):
        assert [record.get("kept") for record in other.history_] == [record.get("kept") for record in here.history_]
        losses, same = ([record.get("criterion", 0.0) for record in each.history_] for each in (other, here))
        assert_allclose(losses, same, rtol=1e-8)
        assert_allclose(other.coefficients_, here.coefficients_, rtol=1e-8, atol=1e-8)
        asked = X if other is there else FRAME
        assert_allclose(other.transform(asked), here.transform(X), rtol=1e-8, atol=1e-8)
    if name == "autoencoder":
        assert_allclose(read.inverse_transform(here.transform(X)), here.inverse_transform(here.transform(X)), atol=1e-8)


def test_few_rows_that_an_autoencoder_draws_are_the_same_ones(in_files, monkeypatch):
    monkeypatch.setattr("mercer.embedding.alternate.MOST_ROWS", 60)
    model = EMBEDDINGS["autoencoder"]
    here, read = (clone(model).fit(rows) for rows in (X, in_files))
    assert_allclose(read.transform(FRAME), here.transform(X), rtol=1e-8, atol=1e-8)


def test_views_that_are_elsewhere_are_those_in_memory():
    model = EMBEDDINGS["simclr, views drawn anew"]
    there = clone(model).fit_views(da.from_array(X, chunks=(50, 4)), da.from_array(OTHER, chunks=(70, 4)))
    here = clone(model).fit_views(X, OTHER)
    assert_allclose(there.transform(X), here.transform(X), rtol=1e-8, atol=1e-8)


def test_a_training_on_rows_elsewhere_goes_on_where_it_was(in_files, tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.training.checkpoint.Checkpoint.is_due", lambda self: True)
    kept = replace(ANEW, checkpoint=tmp_path / "steps")
    model = clone(EMBEDDINGS["simclr, views drawn anew"])
    whole = clone(model).fit(in_files)
    steps, batch_loss = [], TrainedMap.batch_loss

    def interrupted(self, rows, generator):
        steps.append(len(rows))
        if len(steps) == 8:
            raise KeyboardInterrupt
        return batch_loss(self, rows, generator)

    monkeypatch.setattr(TrainedMap, "batch_loss", interrupted)
    model.set_params(solver=kept)
    with pytest.raises(KeyboardInterrupt):
        model.fit(in_files)
    model.fit(in_files)
    assert len(steps) == 8 + 4  # of ten steps; what was kept last is from before the seventh
    assert_array_equal(model.coefficients_, whole.coefficients_)


@pytest.mark.parametrize("epochs", [1, 5])
def test_files_are_read_as_often_however_many_epochs_there_are(epochs, in_files, monkeypatch):
    opened, batches = [], Piece.batches
    monkeypatch.setattr(Piece, "batches", lambda self, *args: (opened.append(self), batches(self, *args))[1])
    KernelEmbedding("simclr", solver=replace(ANEW, epochs=epochs, guard=True), **LEARNED).fit(in_files)
    # Landmarks are given: the median distance, what views are drawn from, their sums, and the copy.
    assert len(opened) == 4 * len(in_files.pieces)


def test_rows_left_out_are_bounded(monkeypatch):
    monkeypatch.setattr("mercer.embedding.steps.MOST_HELD_OUT", 15)
    seen, left_out = split_rows(1000, 0.1, seed=0)
    assert (len(seen), len(left_out)) == (985, 15)
    assert_array_equal(np.sort(np.concatenate([seen, left_out])), np.arange(1000))


def test_a_disk_without_room_says_what_to_do(in_files, monkeypatch):
    class Full(io.BytesIO):
        def write(self, rows):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", Full)
    with pytest.raises(DataFileError, match=r"the rows take 0 MiB as numbers.*Set TMPDIR"):
        EMBEDDINGS["simclr"].fit(in_files)
