"""Tables of representations for the pages of the documentation, from the report of the experiment on embeddings.

`python -m benchmarks.readme` writes them; the report is in `docs/results`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.cluster_tables import EMPTY, RESULTS, cases_of, mean, shown
from experiments.krepes.cases import DEFAULT, KERNEL_PCA, RAW, SAME_WIDTH, START, on, row_of_table_5
from experiments.krepes.concept_cases import BORDER, BORDERS, DIGITS, LOOP, LOOP_SAME, REPRESENTATIONS, SLANT
from experiments.krepes.paper import LANDMARKS, LOSSES, TABLE_1_LOSSES, TABLE_4_GAINS, TABLE_5
from experiments.krepes.step_cases import (
    BESIDE,
    BY_STEPS,
    DRAWS,
    GAUSSIAN,
    PRECONDITIONED_LOSSES,
    PRECONDITIONERS,
    STARTED,
    UNTRAINED,
    beside_networks,
    by_steps,
    preconditioned,
)

Cases = Mapping[str, dict[str, Any]]

SETS = {"MNIST": "mnist", "Adult": "adult", "CoverType": "covtype", "CIFAR-10": "cifar10"}
# Sets with unbalanced classes, for which the balanced accuracy is also shown.
UNEQUAL = ("adult", "covtype")
CONTESTANTS = {
    "`KernelEmbedding()`": DEFAULT,
    "raw inputs": RAW,
    "scikit-learn's Nystroem": SAME_WIDTH,
    "scikit-learn's KernelPCA, 2000 rows": KERNEL_PCA,
    "principal components of the landmarks": START,
}
# The line above each table.
EMBEDDING_SECTIONS = {
    "embeddings": "Test accuracy (and balanced accuracy) in % of a linear classifier on 10 % of the labels:",
    "embeddings by landmarks": "The same on MNIST by loss and choice of landmarks, the paper's Table 5 in brackets:",
    "embeddings by steps": "Losses by gradient steps on 5000 images of MNIST, 300 landmarks, 50 components:",
    "preconditioners": "Test accuracy in % by preconditioner, on draws of the sets, 300 landmarks, 50 components:",
    "beside networks": "A Gaussian kernel / a ResMLP that costs as much, five epochs, test accuracy in %:",
    "concepts": "AUC of a concept of five digits of MNIST, mean over five splits:",
    "borders": "A blue border around the images of one class of CIFAR-10, on three classes in turn:",
    "kappa": "κ on 4000 images of CIFAR-10, 500 landmarks:",
}


def embedding_summaries(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Return the tables of the report by the names of their sections."""
    cases = cases_of(folder / "krepes-full.json")
    made = (contestants, landmarks, steps, preconditioners, networks, concepts, borders, kappa)
    return {name: make(cases) for name, make in zip(EMBEDDING_SECTIONS, made, strict=True)}


def percent(value: float | None) -> str:
    """Return a share in % with one digit."""
    return EMPTY if value is None else f"{100 * value:.1f}"


def accuracy(cases: Cases, case: str) -> str:
    """Return the mean accuracy of a case in %."""
    return percent(mean(dict(cases), case, "accuracy"))


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return a table in the form that pages use."""
    return {"columns": list(columns), "rows": [list(row) for row in rows]}


def contestants(cases: Cases) -> dict[str, Any]:
    """Return the accuracies with a row for each set and a column for each contestant."""
    rows = []
    for title, data in SETS.items():
        cells = []
        for name in CONTESTANTS.values():
            both = [accuracy(cases, on(data, name))]
            if data in UNEQUAL:
                both.append(percent(mean(dict(cases), on(data, name), "balanced accuracy")))
            cells.append(EMPTY if EMPTY in both else " / ".join(both))
        rows.append([title, *cells])
    return table(list(CONTESTANTS), rows)


def landmarks(cases: Cases) -> dict[str, Any]:
    """Return the accuracies of losses with an exact optimum, by choice of landmarks."""
    rows = [
        [
            loss.replace("_", " "),
            *(
                f"{accuracy(cases, on('mnist', row_of_table_5(loss, how)))} [{percent(TABLE_5[loss, how])}]"
                for how in LANDMARKS
            ),
        ]
        for loss in LOSSES
    ]
    return table(LANDMARKS, rows)


def steps(cases: Cases) -> dict[str, Any]:
    """Return the accuracies of losses by their start."""
    rows = [[UNTRAINED, accuracy(cases, on(STARTED, UNTRAINED)), ""]]
    for loss in BY_STEPS:
        random = accuracy(cases, on(STARTED, by_steps(loss, "random"))) if loss in TABLE_4_GAINS else ""
        rows.append([loss.replace("_", " "), accuracy(cases, on(STARTED, by_steps(loss, "principal"))), random])
    return table(("from principal components", "from random numbers"), rows)


def preconditioners(cases: Cases) -> dict[str, Any]:
    """Return the accuracies for sets and losses, by preconditioner."""
    rows = [
        [
            f"{label}, {loss.replace('_', ' ')}",
            *(accuracy(cases, on(label, preconditioned(loss, name))) for name in PRECONDITIONERS),
        ]
        for label in list(DRAWS)[1:]
        for loss in PRECONDITIONED_LOSSES
    ]
    return table([name.replace("_", " ") for name in PRECONDITIONERS], rows)


def networks(cases: Cases) -> dict[str, Any]:
    """Return the accuracies of the kernel and the network, by set and loss."""
    rows = [
        [
            title,
            *(
                " / ".join(accuracy(cases, on(data, beside_networks(loss, name))) for name in (GAUSSIAN, "ResMLP"))
                for loss in TABLE_1_LOSSES
            ),
        ]
        for title, data in SETS.items()
        if data in BESIDE
    ]
    return table([loss.replace("_", " ") for loss in TABLE_1_LOSSES], rows)


def concepts(cases: Cases) -> dict[str, Any]:
    """Return the AUC of concepts of five digits, by representation."""
    measures = {"loop, other digits": LOOP, "loop, same digits": LOOP_SAME, "slant, other digits": SLANT}
    rows = [
        [name, *(shown(mean(dict(cases), on(DIGITS, name), measure)) for measure in measures.values())]
        for name in REPRESENTATIONS
    ]
    return table(list(measures), rows)


def borders(cases: Cases) -> dict[str, Any]:
    """Return how often the border is significant in the class that has it, and in how many other classes."""
    rows = []
    for who in BORDERS:
        found = cases.get(on(BORDER, who), {})
        p = found.get("border: p of the class with the border", [])
        others = found.get("border: other classes that are significant", [])
        rows.append([f"`{who}`", f"{sum(each <= 0.05 for each in p)} of {len(p)}", f"{sum(others):g}"] if p else [])
    return table(("significant in the class that carries it", "other classes"), [row for row in rows if row])


def kappa(cases: Cases) -> dict[str, Any]:
    """Return kappa by loss, with that of a random order."""
    measures = ("kappa", "kappa of a random order")
    rows = []
    for loss in LOSSES:
        found = [mean(dict(cases), on("cifar10", f"kappa, {loss}"), measure) for measure in measures]
        rows.append([loss.replace("_", " "), *(EMPTY if value is None else f"{value:.0f}" for value in found)])
    return table(("κ", "of a random order"), rows)
