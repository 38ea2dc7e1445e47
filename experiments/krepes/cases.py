"""The cases of the default and its rivals on every set, and of the closed-form rows of Table 5.

The cases that are trained by steps are in `step_cases`.
"""

from typing import Any, NamedTuple

from experiments import Case

from .paper import LANDMARKS, LOSSES
from .runs import run


class Data(NamedTuple):
    """A data set, the numbers of rows (None: all), the shape of an image (None: a table), and the number of seeds."""

    name: str
    n_train: int | None = None
    n_test: int | None = None
    image_shape: tuple[int, ...] | None = None
    seeds: int = 3


class Sizes(NamedTuple):
    """The numbers of landmarks and components."""

    m: int
    h: int


FULL = {
    "mnist": Data("mnist", image_shape=(28, 28)),
    "adult": Data("adult"),
    "covtype": Data("covtype"),
    "cifar10": Data("cifar10", image_shape=(32, 32, 3)),
}
# Smaller sets have other names, so that claims about the full sets are "not run" rather than "not held".
QUICK = {
    "digits": Data("digits", image_shape=(8, 8), seeds=2),
    "mnist 3 000": Data("mnist", 3000, 1000, (28, 28), seeds=1),
    "adult 3 000": Data("adult", 3000, 2000, seeds=1),
    "covtype 6 000": Data("covtype", 6000, 2000, seeds=1),
    "cifar10 2 000": Data("cifar10", 2000, 1000, (32, 32, 3), seeds=1),
}
FULL_SIZES, QUICK_SIZES = Sizes(1000, 150), Sizes(300, 30)
# KernelPCA needs memory for the square of its rows, so it is fitted on this many rows. It then maps all rows.
MOST_ROWS_OF_KERNEL_PCA = 2000

DEFAULT, RAW, START = "KernelEmbedding()", "raw inputs", "principal-component start"
SAME_WIDTH, KERNEL_PCA = "Nystroem, h components", "KernelPCA, h components"
CONTESTANTS = (DEFAULT, RAW, START, SAME_WIDTH, KERNEL_PCA)


def cases(quick: bool) -> list[Case]:
    """Return all cases; the quick ones use small draws of the sets, and scikit-learn's digits for Table 5."""
    sets, sizes = (QUICK, QUICK_SIZES) if quick else (FULL, FULL_SIZES)
    made = [case for label, data in sets.items() for case in set_cases(label, data, sizes)]
    table_5 = "digits" if quick else "mnist"
    for loss in LOSSES:
        for landmarks in LANDMARKS:
            name = on(table_5, row_of_table_5(loss, landmarks))
            made.append(embedding_case(name, sets[table_5], sizes, loss=loss, landmarks=landmarks))
    return made


def set_cases(label: str, data: Data, sizes: Sizes) -> list[Case]:
    """Return the cases of every contestant on one set."""
    others: dict[str, tuple[str, dict[str, int]]] = {
        RAW: ("raw", {}),
        START: ("Nystrom", {"n_landmarks": sizes.m, "n_components": sizes.h}),
        SAME_WIDTH: ("Nystroem", {"n_components": sizes.h}),
        KERNEL_PCA: ("KernelPCA", {"n_components": sizes.h, "most_rows": MOST_ROWS_OF_KERNEL_PCA}),
    }
    made = [Case(on(label, name), run, settings_of(data, *other), data.seeds) for name, other in others.items()]
    return [embedding_case(on(label, DEFAULT), data, sizes), *made]


def embedding_case(name: str, data: Data, sizes: Sizes, **options: Any) -> Case:
    """Return a case of KernelEmbedding with these numbers of landmarks and components, and with other options."""
    stated: dict[str, Any] = {"n_landmarks": sizes.m, "n_components": sizes.h}
    if data.image_shape is not None:
        stated["image_shape"] = data.image_shape
    return Case(name, run, settings_of(data, "KernelEmbedding", stated | options), data.seeds)


def settings_of(data: Data, contestant: str, options: dict[str, Any]) -> dict[str, Any]:
    rows = {"name": data.name, "n_train": data.n_train, "n_test": data.n_test}
    return {"data": rows, "contestant": contestant, "options": options}


def on(data: str, contestant: str) -> str:
    """Return the name of the case of a contestant on a set."""
    return f"{data}: {contestant}"


def row_of_table_5(loss: str, landmarks: str) -> str:
    return f"{loss}, {landmarks}"
