"""The cases: Table 5 for all losses, Tables 1, 2 and 4 on small draws of their sets, and numbers of landmarks."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from experiments import Case
from experiments.krepes.paper import LOSSES, TABLE_1_LOSSES, TABLE_4_GAINS, TRAINED

from .runs import run_embedding, run_landmarks, run_network


class Data(NamedTuple):
    """A data set, the numbers of training and test rows that are drawn, and the shape of an image (None: a table)."""

    name: str
    n_train: int
    n_test: int
    image_shape: tuple[int, ...] | None = None


class Size(NamedTuple):
    """Numbers of landmarks, components, epochs and draws of the search; the paper has 2000, 150, 60 to 80, 3 or 4."""

    m: int
    h: int
    epochs: int
    draws: int


ALL_LOSSES = (*TRAINED, *LOSSES)
# The columns of Table 5. Leverage scores are the paper's own estimate (section 3.3).
LANDMARKS = ("uniform", "kmeans++", "leverage_hutchinson")
PRECONDITIONERS = ("none", "general", "gauss_newton")
PRECONDITIONED = ("barlow_twins", "simclr")
STARTED = tuple(TABLE_4_GAINS)
TABLES = ("adult", "covtype")
NETWORK = "the network"

FULL = {
    "mnist": Data("mnist", 1500, 2000, (28, 28)),
    "adult": Data("adult", 1500, 3000),
    "covtype": Data("covtype", 1500, 3000),
}
QUICK = {"digits": Data("digits", 1000, 400, (8, 8)), "adult, 600 rows": Data("adult", 600, 600)}
FULL_SIZE, QUICK_SIZE = Size(150, 30, 6, 3), Size(60, 15, 3, 2)
LAW_ROWS, LAW_LANDMARKS = (1000, 3000, 9000), (25, 50, 100, 200, 400)
LAW_TEST_ROWS, LAW_SEEDS = 3000, 1


def cases(quick: bool) -> list[Case]:
    """Return all cases; the quick ones are Table 5 on scikit-learn's digits, and a table with a preconditioner."""
    if quick:
        first, second = QUICK
        made = [embedding(first, "simclr", landmarks, True) for landmarks in LANDMARKS]
        return [*made, embedding(second, "barlow_twins", "uniform", True, preconditioner="general")]
    made = [embedding("mnist", loss, landmarks) for loss in ALL_LOSSES for landmarks in LANDMARKS]
    for data in TABLES:
        made += table_cases(data)
    made += [
        Case(law(n, m), run_landmarks, {"rows": n, "test_rows": LAW_TEST_ROWS, "landmarks": m}, LAW_SEEDS)
        for n in LAW_ROWS
        for m in LAW_LANDMARKS
    ]
    return made


def table_cases(data: str) -> Iterator[Case]:
    """Yield the cases of Tables 1, 2 and 4 on one set: losses with kernels and networks, starts, preconditioners."""
    for loss in TABLE_1_LOSSES:
        yield embedding(data, loss, "uniform")
        settings = {"data": FULL[data]._asdict(), "loss": loss, **FULL_SIZE._asdict()}
        yield Case(on(data, loss, NETWORK), run_network, settings)
    for loss in STARTED:
        yield embedding(data, loss, "uniform", start="random")
    for loss in PRECONDITIONED:
        for name in PRECONDITIONERS[1:]:
            yield embedding(data, loss, "uniform", preconditioner=name)


def embedding(data: str, loss: str, landmarks: str, quick: bool = False, **changes: Any) -> Case:
    """Return the case of `papers.krepes_search` on a set; by default from principal components, not preconditioned."""
    sets, size = (QUICK, QUICK_SIZE) if quick else (FULL, FULL_SIZE)
    settings = {"data": sets[data]._asdict(), "loss": loss, "landmarks": landmarks, **size._asdict(), **changes}
    return Case(on(data, loss, landmarks, **changes), run_embedding, settings)


def on(data: str, loss: str, how: str, **changes: Any) -> str:
    """Return the name of a case."""
    return ", ".join([f"{data}: {loss}", how, *(f"{name} {value}" for name, value in changes.items())])


def law(n: int, m: int) -> str:
    return f"mnist, {n} rows: {m} landmarks"
