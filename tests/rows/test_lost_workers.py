"""Workers that are lost in the middle of a fit: the fit ends with the same result, or says what to lower."""

import os
import signal
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from mercer import GPRegressor, KernelDiscriminant, KernelEmbedding, Nystrom, RFMClassifier, RFMRegressor
from mercer.embedding import Steps
from mercer.exceptions import ClusterError
from mercer.rows import DaskRows, sum_over_rows
from tests.examples_of import numbers

pytestmark = pytest.mark.slow

X = numbers(120, 3)
Y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
LABELS = (Y > 0.2).astype(int)
TABLE = {"metric": "identity", "warp": "none", "n_landmarks": 15, "random_state": 0}
STEPS = Steps(epochs=1, batch_size=40, redraw=True, guard=False)
FAMILIES = {
    "nystrom": (Nystrom(n_landmarks=15, landmarks="kmeans++", random_state=0), Y, "transform"),
    "embedding": (KernelEmbedding(n_landmarks=15, n_components=4, random_state=0), Y, "transform"),
    "steps": (KernelEmbedding("simclr", solver=STEPS, n_landmarks=15, n_components=4, random_state=0), Y, "transform"),
    "discriminant": (KernelDiscriminant("gaussian", n_landmarks=15, random_state=0), LABELS, "predict_proba"),
    "rfm": (RFMRegressor("laplace", **TABLE), Y, "predict"),
    "rfm classes": (RFMClassifier("laplace", **TABLE), LABELS, "predict_proba"),
    "process": (GPRegressor("laplace", target_warp="none", **TABLE), Y, "predict"),
}


def dies_once(rows, folder):
    """Return the rows; the process that reads the seventh partition in all is killed, once."""
    if len(rows):
        Path(folder, f"{os.getpid()}-{os.urandom(6).hex()}").touch()
        if len(os.listdir(folder)) >= 7:
            try:
                Path(folder, "killed").touch(exist_ok=False)
            except FileExistsError:
                return rows
            os.kill(os.getpid(), signal.SIGKILL)
    return rows


@pytest.mark.parametrize("family", FAMILIES)
def test_a_worker_killed_in_the_middle_of_a_fit(client, family, tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.tabular_models.all_rows.MOST_TABLE_ROWS", 60)
    model, y, asked = FAMILIES[family]
    rows = da.from_array(X, chunks=(30, 3)).map_blocks(dies_once, str(tmp_path), dtype=X.dtype, meta=X[:0])
    here = clone(model).fit(X, y)
    there = clone(model).fit(rows, da.from_array(y, chunks=30))
    assert (tmp_path / "killed").exists()
    assert_allclose(getattr(there, asked)(X), getattr(here, asked)(X), rtol=1e-8, atol=1e-8)


def hungry():
    """Return a function of blocks that needs more memory than a worker has."""

    def of_block(x):
        kept = [np.ones(10_000_000) for _ in range(40)]
        return (x.sum() + kept[-1][0],)

    return of_block


def test_a_worker_that_runs_out_of_memory_says_what_to_lower():
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 1, "memory_limit": "700MB", "dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=1, host="127.0.0.1", **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = DaskRows(da.from_array(X), client=client)
        with pytest.raises(ClusterError, match=r"Lower working_memory or n_landmarks"):
            sum_over_rows(hungry, (), rows, rows_a_block=200)
