"""The benchmark of CoverType's rows in files: its files, a small run and its verdicts."""

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import covertype_rows
from mercer.rows import open_rows


@pytest.fixture
def folder(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(700, 4))
    X[:, 3] = 0.0
    data = SimpleNamespace(X=X, y=(X[:, 0] > 0).astype(np.uint8))
    monkeypatch.setattr("mercer.datasets.load", lambda name: data)
    for name, value in {"JUDGED": 200, "ROWS_A_FILE": 600, "ROWS_A_GROUP": 250, "ROWS_A_BATCH": 100}.items():
        monkeypatch.setattr(covertype_rows, name, value)
    covertype_rows.write_rows(str(tmp_path), 900)
    return str(tmp_path)


def test_the_files_have_all_rows_in_single_precision(folder):
    rows = open_rows(f"{folder}/*.parquet")
    assert rows.shape == (900, 5)
    assert rows.without("label").dtype == np.float32
    assert [piece.n_rows for piece in rows.pieces] == [250, 250, 100, 250, 50]


@pytest.mark.parametrize("contestant", ["KernelDiscriminant", "RBFSampler", "Nystroem"])
def test_contestants_learn_from_the_files(folder, contestant):
    found = covertype_rows.fit(folder, contestant, 30, 1)
    assert found["accuracy"] > 0.8
    assert found["seconds"] > 0


def test_verdicts_are_about_speed_and_accuracy():
    fits = [
        {"contestant": name, "seconds": s, "cpu_seconds": c, "accuracy": a}
        for name, s, c, a in (("KernelDiscriminant", 10.0, 20.0, 0.74), ("RBFSampler", 25.0, 30.0, 0.75))
    ]
    assert [claim["status"] for claim in covertype_rows.judge(fits)] == ["held", "not held", "not held"]
