"""The benchmark of rows in files: its files hold what they say, and its verdicts go by the largest number of rows."""

import pytest

from benchmarks import cluster
from mercer.rows import open_rows


def test_the_files_have_all_rows_in_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "ROWS_A_FILE", 50)
    monkeypatch.setattr(cluster, "ROWS_A_GROUP", 20)
    cluster.write_rows(str(tmp_path), 120)
    rows = open_rows(tmp_path)
    assert rows.shape == (120, cluster.COLUMNS + 2)
    assert [piece.n_rows for piece in rows.pieces] == [20, 20, 10, 20, 20, 10, 20]
    assert ((rows.column("y")[:] > cluster.MEAN) == rows.column("label")[:]).all()


def test_verdicts_go_by_the_largest_number_of_rows():
    def fit(model, rows, workers, seconds, **more):
        return {"model": model, "rows": rows, "workers": workers, "seconds": seconds} | more

    here = {"cpu_seconds": 2.0, "peak_mb": 300.0, "score": 0.8}
    fits = [
        fit("KernelDiscriminant", 100, 0, 2.0, **here),
        fit("KernelDiscriminant", 1000, 0, 20.0, **here | {"cpu_seconds": 24.0, "peak_mb": 2500.0}),
        fit("KernelDiscriminant", 1000, 1, 22.0),
        fit("KernelDiscriminant", 1000, 2, 11.0),
        fit("RBFSampler", 1000, 0, 30.0, score=0.85),
    ]
    found = {claim["claim"].partition(": ")[2]: (claim["value"], claim["status"]) for claim in cluster.judge(fits)}
    assert found == {
        "peak memory in one process, MB": (2500.0, "not held"),
        "CPU seconds a row over those of 100 rows": (pytest.approx(1.2), "not held"),
        "one worker over one process": (pytest.approx(1.1), "held"),
        "one worker over two": (2.0, "held"),
        "their seconds over ours": (1.5, "not held"),
        "our accuracy less theirs": (pytest.approx(-0.05), "not held"),
    }
