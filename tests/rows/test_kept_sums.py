"""A client that is killed: the same fit, begun again, goes on from its checkpoint and gives the same bits."""

import os
import signal
import subprocess
import sys
from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_array_equal

from mercer.rows import DaskRows, open_rows, sum_over_rows
from tests.examples_of import numbers

X = numbers(600, 3)
FIT = """
import os, signal, sys
import numpy as np
import torch
torch.set_num_threads(1)
import mercer.rows.kept as kept
from mercer import KernelDiscriminant
from mercer.rows import open_rows
files, folder, out, most = sys.argv[1:]
kept.SECONDS_BETWEEN = 0.0
added, usual = [], kept.KeptSum.add
def counted(self, terms):
    usual(self, terms)
    if self.file is not None:
        added.append(self.done)
        if len(added) == int(most):
            os.kill(os.getpid(), signal.SIGKILL)
kept.KeptSum.add = counted
rows = open_rows(files, checkpoint=folder or None)
model = KernelDiscriminant("gaussian", n_landmarks=20, working_memory=0.02, random_state=0)
model.fit(rows.without("y"), rows.column("y"))
np.savez(out, probabilities=model.predict_proba(rows.without("y")), added=added)
"""


def fitted(tmp_path, checkpoint, most):
    """Fit in a process of its own, which is killed after so many blocks; return how it ended."""
    arguments = [tmp_path / "rows.parquet", checkpoint, tmp_path / "out.npz", most]
    return subprocess.run([sys.executable, "-c", FIT, *map(str, arguments)], check=False).returncode


def test_a_fit_that_was_killed_goes_on_and_gives_the_same_bits(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=X[:, 0] * X[:, 1] > 0)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=110)
    assert fitted(tmp_path, "", 0) == 0
    with np.load(tmp_path / "out.npz") as whole:
        expected = whole["probabilities"]
    folder = tmp_path / "sums"
    assert fitted(tmp_path, folder, 3) == -signal.SIGKILL
    assert fitted(tmp_path, folder, 0) == 0
    with np.load(tmp_path / "out.npz") as resumed:
        assert resumed["added"][0] == 4
        assert_array_equal(resumed["probabilities"], expected)


def moments():
    """Return the function of blocks."""
    return lambda x: (x.T @ x, x.sum(dim=0))


class Warp:
    """A fitted thing whose method goes into a sum."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * x

    def transform(self, x):
        return self.factor * x


def warped(warp):
    """Return the function of warped blocks."""
    return lambda x: (warp(x).sum(dim=0),)


@pytest.mark.parametrize("part", [lambda warp: warp, lambda warp: warp.transform, lambda warp: partial(warp.transform)])
def test_what_objects_and_their_methods_hold_tells_sums_apart(part, tmp_path):
    rows = DaskRows(da.from_array(X, chunks=(300, 3)), checkpoint=tmp_path)
    for factor in (1.0, 3.0):
        (found,) = sum_over_rows(warped, (part(Warp(factor)),), rows, rows_a_block=100)
        assert_array_equal(found, sum_over_rows(warped, (Warp(factor),), X, rows_a_block=100)[0])


def others():
    """Return another function of blocks."""
    return lambda x: (x.T @ x, 2 * x.sum(dim=0))


def test_sums_of_tasks_are_kept_too(tmp_path, monkeypatch):
    plain = DaskRows(da.from_array(X, chunks=(97, 3)))
    kept = DaskRows(da.from_array(X, chunks=(97, 3)), checkpoint=tmp_path)
    expected = sum_over_rows(moments, (), plain, rows_a_block=1)
    calls, usual = [], kept.cluster.compute
    monkeypatch.setattr("mercer.rows.kept.SECONDS_BETWEEN", 0.0)

    def fails_later(tasks):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return usual(tasks)

    monkeypatch.setattr(kept.cluster, "compute", fails_later)
    monkeypatch.setattr("mercer.rows.cluster.WAVE", 8)
    with pytest.raises(KeyboardInterrupt):
        sum_over_rows(moments, (), kept, rows_a_block=1)
    found = sum_over_rows(moments, (), kept, rows_a_block=1)
    assert len(calls) == 2 + 9  # of ten waves one was done
    for ours, theirs in zip(found, expected, strict=True):
        assert_array_equal(ours, theirs)


def test_a_file_of_another_sum_is_not_taken(tmp_path):
    pd.DataFrame(X).rename(columns=str).to_parquet(tmp_path / "rows.parquet")
    rows = open_rows(tmp_path / "rows.parquet", checkpoint=tmp_path / "sums")
    for make, block in ((moments, 50), (others, 50), (moments, 60)):
        found = sum_over_rows(make, (), rows, rows_a_block=block)
        for ours, theirs in zip(found, sum_over_rows(make, (), X, rows_a_block=block), strict=True):
            assert_array_equal(ours, theirs)
    assert len(os.listdir(tmp_path / "sums")) == 3
    pd.DataFrame(2 * X).rename(columns=str).to_parquet(tmp_path / "rows.parquet")
    rows = open_rows(tmp_path / "rows.parquet", checkpoint=tmp_path / "sums")
    assert_array_equal(
        sum_over_rows(moments, (), rows, rows_a_block=50)[1], sum_over_rows(moments, (), 2 * X, rows_a_block=50)[1]
    )


def test_slices_of_files_are_kept_by_themselves(tmp_path):
    pd.DataFrame(X).rename(columns=str).to_parquet(tmp_path / "rows.parquet")
    rows = open_rows(tmp_path / "rows.parquet", checkpoint=tmp_path / "sums")
    for part in (slice(0, 50), slice(50, 100), slice(50, 100)):
        found = sum_over_rows(moments, (), rows.between(part), rows_a_block=10)
        assert_array_equal(found[0], sum_over_rows(moments, (), X[part], rows_a_block=10)[0])
    assert len(os.listdir(tmp_path / "sums")) == 2
    sum_over_rows(moments, (), rows, rows_a_block=10, dtype=torch.float32)
    sum_over_rows(moments, (), rows, rows_a_block=10, dtype=torch.float64)
    assert len(os.listdir(tmp_path / "sums")) == 4
