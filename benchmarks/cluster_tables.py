"""Tables of clusterings for the pages of the documentation, from the reports of both clustering experiments.

`python -m benchmarks.readme` writes them; the reports are in `docs/results`.
"""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[1]
RESULTS = HOME / "docs" / "results"
EMPTY = "-"

# For each row of the page, the case of the report.
FACES = {
    "`SubspaceClustering()`": "SubspaceClustering()",
    "without feature learning": "without feature learning",
    "the paper's method, as printed": "Algorithm 1 as printed, lambda 0.2",
    "the paper's KTRR (ridge self-expression), as printed": "KTRR as printed, lambda 0.2",
    "SSC-OMP": "omp without feature learning",
    "EnSC": "elastic_net without feature learning",
}
SUBJECTS = (10, 20, 30, 38)
OTHER_SETS = {"COIL-20": "coil20", "digits": "digits", "MNIST, 2000 images": "mnist"}
SET_METHODS = {
    "`SubspaceClustering()`": "SubspaceClustering()",
    "without feature learning": "without feature learning",
    "10-NN spectral clustering": "10-NN spectral clustering",
}
MANIFOLD_SETS = {
    "MNIST, 2000": "mnist 2 000",
    "MNIST, 10 000": "mnist 10 000",
    "digits, pixels": "digits",
    "COIL-20": "coil20",
    "CIFAR-10, 2000": "cifar10 2 000",
}
OURS = "ManifoldClustering()"
# For each column, the cases (the first that exists is used) and the measure.
MANIFOLD_COLUMNS = {
    "`ManifoldClustering()`": ((OURS,), "accuracy"),
    "after its start": ((OURS,), "start accuracy"),
    "after its second stage": ((OURS,), "final accuracy"),
    "MLC, as printed": (("mlc, as printed",), "accuracy"),
    "NMCE, as printed": (("nmce, as printed",), "accuracy"),
    "`SubspaceClustering()`": (("SubspaceClustering()",), "accuracy"),
    "elastic net": (("EnSC, mean kept", "EnSC"), "accuracy"),
    "matching pursuit": (("SSC-OMP, mean kept", "SSC-OMP"), "accuracy"),
    "10-NN spectral": (("10-NN spectral",), "accuracy"),
    "k-means": (("k-means",), "accuracy"),
}


def cluster_summaries(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Return the tables of both reports by the names of their sections."""
    subspaces = cases_of(folder / "precision_subspace_clustering-full.json")
    manifolds = cases_of(folder / "manifold_linearizing_clustering-full.json")
    return {
        "faces": faces(subspaces),
        "subspaces elsewhere": subspaces_elsewhere(subspaces),
        "manifolds": manifold_sets(manifolds),
    }


def cases_of(path: Path) -> dict[str, dict[str, Any]]:
    """Return the measures of those cases of a report that are done."""
    report = json.loads(path.read_text())
    return {case["case"]: case["measures"] for case in report["cases"] if case["done"]}


def mean(cases: dict[str, dict[str, Any]], case: str, measure: str) -> float | None:
    """Return the mean of a measure over seeds; None if it is missing."""
    found = cases.get(case, {}).get(measure)
    return statistics.fmean(found) if found else None


def shown(value: float | None) -> str:
    """Return a share with three digits, such as .913."""
    return EMPTY if value is None else f"{value:.3f}".removeprefix("0")


def best_in_bold(values: Sequence[float | None], texts: Sequence[str]) -> list[str]:
    """Return the texts, with that of the largest value in bold."""
    top = max((value for value in values if value is not None), default=None)
    return [
        f"**{text}**" if value is not None and value == top else text for value, text in zip(values, texts, strict=True)
    ]


def by_column(columns: Sequence[tuple[list[float | None], list[str]]], names: Sequence[str]) -> list[list[str]]:
    """Return rows of cells from columns of values and texts, with the largest value of each column in bold."""
    cells = [best_in_bold(values, texts) for values, texts in columns]
    return [[name, *row] for name, *row in zip(names, *cells, strict=True)]


def faces(cases: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return NMI and ARI on Extended Yale B by the number of subjects."""

    def column(k: int) -> tuple[list[float | None], list[str]]:
        names = [f"yaleb, {k} subjects: {method}" for method in FACES.values()]
        pairs = [(mean(cases, name, "nmi"), mean(cases, name, "ari")) for name in names]
        texts = [EMPTY if nmi is None else f"{shown(nmi)} / {shown(ari)}" for nmi, ari in pairs]
        return [nmi for nmi, _ in pairs], texts

    columns = [f"k = {k}" for k in SUBJECTS]
    return {"columns": columns, "rows": by_column([column(k) for k in SUBJECTS], list(FACES))}


def subspaces_elsewhere(cases: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the NMI on sets that are not faces."""

    def column(data: str) -> tuple[list[float | None], list[str]]:
        values = [mean(cases, f"{data}: {method}", "nmi") for method in SET_METHODS.values()]
        return values, [shown(value) for value in values]

    rows = by_column([column(data) for data in OTHER_SETS.values()], list(SET_METHODS))
    return {"columns": list(OTHER_SETS), "rows": rows}


def manifold_sets(cases: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the accuracies with a row for each set and its largest value in bold; stages are not compared."""
    rows = []
    for name, data in MANIFOLD_SETS.items():
        values = []
        for methods, measure in MANIFOLD_COLUMNS.values():
            found = (mean(cases, f"{data}: {method}", measure) for method in methods)
            values.append(next((value for value in found if value is not None), None))
        competing = [
            None if "after" in column else value for column, value in zip(MANIFOLD_COLUMNS, values, strict=True)
        ]
        rows.append([name, *best_in_bold(competing, [shown(value) for value in values])])
    return {"columns": list(MANIFOLD_COLUMNS), "rows": rows}
