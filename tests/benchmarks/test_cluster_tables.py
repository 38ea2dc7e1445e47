"""Tables of clusterings for the documentation's pages."""

import json

from benchmarks.cluster_tables import EMPTY, FACES, MANIFOLD_COLUMNS, cluster_summaries


def write(folder, name, measures):
    cases = [{"case": case, "done": 1 if values else 0, "measures": values} for case, values in measures.items()]
    (folder / f"{name}-full.json").write_text(json.dumps({"cases": cases}))


def test_cells_are_means_of_cases_and_the_best_is_bold(tmp_path):
    faces = {
        "yaleb, 10 subjects: SubspaceClustering()": {"nmi": [0.9, 0.94], "ari": [0.8]},
        "yaleb, 10 subjects: without feature learning": {"nmi": [0.5], "ari": [0.4]},
        "coil20: 10-NN spectral clustering": {"nmi": [0.88]},
        "coil20: SubspaceClustering()": {},
    }
    write(tmp_path, "precision_subspace_clustering", faces)
    sets = {
        "digits: ManifoldClustering()": {"accuracy": [0.9], "start accuracy": [0.95], "final accuracy": [1.0]},
        "digits: EnSC": {"accuracy": [0.8]},
        "mnist 2 000: EnSC, mean kept": {"accuracy": [0.7]},
    }
    write(tmp_path, "manifold_linearizing_clustering", sets)
    found = cluster_summaries(tmp_path)
    assert [row[0] for row in found["faces"]["rows"]] == list(FACES)
    assert [row[1] for row in found["faces"]["rows"]][:3] == ["**.920 / .800**", ".500 / .400", EMPTY]
    assert all(row[2] == EMPTY for row in found["faces"]["rows"])
    assert [row[1] for row in found["subspaces elsewhere"]["rows"]] == [EMPTY, EMPTY, "**.880**"]
    rows = {row[0]: dict(zip(MANIFOLD_COLUMNS, row[1:], strict=True)) for row in found["manifolds"]["rows"]}
    digits = rows["digits, pixels"]
    assert digits["`ManifoldClustering()`"] == "**.900**"
    assert (digits["after its start"], digits["after its second stage"]) == (".950", "1.000")
    assert (digits["elastic net"], digits["k-means"]) == (".800", EMPTY)
    assert rows["MNIST, 2000"]["elastic net"] == "**.700**"
