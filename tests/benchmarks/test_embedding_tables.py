"""Tables of representations for the documentation's pages."""

import json

from benchmarks.cluster_tables import EMPTY
from benchmarks.embedding_tables import EMBEDDING_SECTIONS, embedding_summaries


def test_cells_are_means_of_cases(tmp_path):
    measures = {
        "adult: KernelEmbedding()": {"accuracy": [0.8, 0.9], "balanced accuracy": [0.7]},
        "mnist: raw inputs": {"accuracy": [0.91]},
        "mnist: kernel_pca, uniform": {"accuracy": [0.93]},
        "mnist 5 000: byol by steps from random": {"accuracy": [0.881]},
        "cifar10 3 000: simclr under preconditioner kernel": {"accuracy": [0.3]},
        "cifar10: byol beside networks, Gaussian kernel": {"accuracy": [0.4]},
        "cifar10: byol beside networks, ResMLP": {"accuracy": [0.35]},
        "concepts in mnist: pixels": {"loop: AUC on the other digits": [0.4, 0.5]},
        "a border in cifar10: Nystrom": {
            "border: p of the class with the border": [0.01, 0.2],
            "border: other classes that are significant": [0.0, 1.0],
        },
        "cifar10: kappa, kernel_pca": {"kappa": [116], "kappa of a random order": [29.1]},
    }
    cases = [{"case": case, "done": 1, "measures": values} for case, values in measures.items()]
    (tmp_path / "krepes-full.json").write_text(json.dumps({"cases": cases}))
    found = embedding_summaries(tmp_path)
    assert list(found) == list(EMBEDDING_SECTIONS)

    def row(section, name):
        (line,) = [line for line in found[section]["rows"] if line[0] == name]
        assert len(line) == len(found[section]["columns"]) + 1
        return line[1:]

    assert row("embeddings", "Adult")[0] == "85.0 / 70.0"
    assert row("embeddings", "MNIST")[:2] == [EMPTY, "91.0"]
    assert row("embeddings by landmarks", "kernel pca")[0] == "93.0 [89.1]"
    assert row("embeddings by steps", "byol") == [EMPTY, "88.1"]
    assert row("preconditioners", "cifar10 3 000, simclr") == [EMPTY, "30.0", EMPTY]
    assert row("beside networks", "CIFAR-10")[3] == "40.0 / 35.0"
    assert row("concepts", "pixels") == [".450", EMPTY, EMPTY]
    assert row("borders", "`Nystrom`") == ["1 of 2", "1"]
    assert row("kappa", "kernel pca") == ["116", "29"]
