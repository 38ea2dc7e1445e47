"""The benchmark of clustering: its verdicts, and a small run."""

import json
from importlib import import_module

from benchmarks import clustering, fresh_process
from benchmarks.__main__ import main


def test_verdicts_go_by_medians_and_by_one_thread():
    case = clustering.ClusteringCase("made", clustering.planes, clustering.subspace_clustering, 2.0, 0.9)
    seconds = {0: (1.0, 1.0, 9.0), 1: (1.0, 1.2, 1.2), 2: (1.4, 1.4, 8.0), 3: (3.0, 3.0, 1.0)}
    fits = [
        {"case": "made", "surroundings": clustering.ALL_SURROUNDINGS[i].name, "seconds": one, "nmi": 0.8}
        for i, all_seconds in seconds.items()
        for one in all_seconds
    ]
    claims = clustering.judge([case], fits)
    assert [claim["status"] for claim in claims] == ["held", "not held", "held", "not held", "not held"]
    assert [claim["status"] for claim in clustering.judge([case], [])] == ["not measured"] * 5


def test_a_small_case_runs_in_all_surroundings(tmp_path, monkeypatch, capsys):
    def call(module, function, /, *, default_threads=False, **arguments):
        return getattr(import_module(f"benchmarks.{module}"), function)(**json.loads(json.dumps(arguments)))

    monkeypatch.setattr(fresh_process, "call", call)
    assert main(["clustering", "--quick", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "clustering-quick.json").read_text())
    assert [fit["surroundings"] for fit in found["fits"]] == [place.name for place in clustering.ALL_SURROUNDINGS]
    assert all(fit["nmi"] > 0.95 for fit in found["fits"])
    assert "SubspaceClustering, planes" in capsys.readouterr().out
