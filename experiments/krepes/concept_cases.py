"""Section 5 of the paper on concepts whose truth is known, and the coverage of the classes by loss (Table 3)."""

from typing import Any

from experiments import Case, Claim, Results, Table, or_empty

from .cases import Data, Sizes, embedding_case, on
from .concept_runs import run_border, run_digits
from .paper import LOSSES
from .step_tables import shown

DIGITS, BORDER = "concepts in mnist", "a border in cifar10"
# The contestants for the digits: estimator, whether it gets scattering coefficients, and its options.
REPRESENTATIONS: dict[str, tuple[str, bool, dict[str, Any]]] = {
    "pixels": ("raw", False, {}),
    "Nystrom": ("Nystrom", False, {}),
    "KernelEmbedding()": ("KernelEmbedding", False, {"image_shape": (28, 28)}),
    "KernelEmbedding, simple_contrastive": (
        "KernelEmbedding",
        False,
        {"image_shape": (28, 28), "loss": "simple_contrastive"},
    ),
    "scattering": ("raw", True, {}),
    "Nystrom on scattering": ("Nystrom", True, {}),
}
BORDERS = {"Nystrom": {}, "KernelEmbedding": {"image_shape": (32, 32, 3)}}
CHANCE = 0.5
LOOP, LOOP_SAME = "loop: AUC on the other digits", "loop: AUC on the same digits"
SLANT = "slant: AUC on the other digits"


def concept_cases(quick: bool) -> list[Case]:
    """Return the cases of digits and borders; in full mode also kappa on CIFAR-10 for every loss in closed form."""
    rows = {"n_train": 1500, "n_test": 1000} if quick else {"n_train": 4000, "n_test": 2000}
    sizes = {"n_landmarks": 200, "n_components": 30} if quick else {"n_landmarks": 500, "n_components": 100}
    made = []
    for name, (who, scattering, options) in REPRESENTATIONS.items():
        given = options | (sizes if who != "raw" else {})
        settings = {**rows, "contestant": who, "scattering": scattering, "options": given}
        made.append(Case(on(_quickly(DIGITS, quick), name), run_digits, settings, 1 if quick else 5))
    for who, options in BORDERS.items():
        settings = {**rows, "contestant": who, "options": options | sizes}
        made.append(Case(on(_quickly(BORDER, quick), who), run_border, settings, 1 if quick else 3))
    if not quick:
        data = Data("cifar10", 4000, 1000, image_shape=(32, 32, 3), seeds=1)
        made += [embedding_case(on("cifar10", f"kappa, {loss}"), data, Sizes(500, 100), loss=loss) for loss in LOSSES]
    return made


def _quickly(label: str, quick: bool) -> str:
    # Smaller sets have other names, so that claims about the full sets are "not run".
    return f"{label}, few rows" if quick else label


def beside_pixels(name: str) -> Claim:
    """Return the claim that a concept of five digits is found in the other five, better than on pixels or by chance."""
    case, pixels = on(DIGITS, name), on(DIGITS, "pixels")
    return Claim(
        f"{name}: 'loop' carries over to other digits, better than chance and than on pixels (AUC)",
        None,
        lambda results: results.values(case, LOOP),
        lambda results: results.mean(case, LOOP) > max(CHANCE, results.mean(pixels, LOOP)),
        "what tells the five digits apart is no loop, and the other five are told apart by something else",
    )


def border_claim(who: str) -> Claim:
    """Return the claim that on every seed the border is significant in the class that has it, and in no other."""
    case = on(BORDER, who)

    def holds(results: Results) -> bool:
        p = results.values(case, "border: p of the class with the border")
        others = results.values(case, "border: other classes that are significant")
        return max(p) <= 0.05 and max(others) == 0

    return Claim(
        f"{who}: the border shows in the profile of the class that carries it and in no other (p)",
        None,
        lambda results: results.values(case, "border: p of the class with the border"),
        holds,
    )


CONCEPT_CLAIMS = [
    *[beside_pixels(name) for name in REPRESENTATIONS if name != "pixels"],
    *[border_claim(who) for who in BORDERS],
]


def concept_tables(results: Results) -> list[Table]:
    """Return the tables of digits and borders; cells with missing runs are empty."""
    found = []
    digits = [on(label, name) for label in (DIGITS, _quickly(DIGITS, True)) for name in REPRESENTATIONS]
    borders = [on(label, who) for label in (BORDER, _quickly(BORDER, True)) for who in BORDERS]
    for title, cases, measures in (
        ("Concepts of five digits, sought in the other five", digits, (LOOP, LOOP_SAME, SLANT)),
        (
            "A blue border around the images of one class of cifar10",
            borders,
            (
                "border: p of the class with the border",
                "border: other classes that are significant",
                "border: accuracy",
                "blue surroundings: p of the class with the border",
                "blue surroundings: other classes that are significant",
            ),
        ),
    ):
        rows = [[case, *(or_empty(shown, results, case, measure) for measure in measures)] for case in cases]
        found.append(Table(title, ("representation", *measures), [row for row in rows if any(row[1:])]))
    return found
